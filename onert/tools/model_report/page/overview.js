// The most important facts. With two reports, the facts side by side, with differences marked.
const overviewRows = (report) => {
  const { facts, model, machine, estimate, profile } = report, rows = [];
  const p = facts.parameters, a = facts.arithmetic, m = facts.memory;
  rows.push(["Format", `${model.format || "?"}, ${bytes(model.bytes)}`]);
  if (model.task) rows.push(["Task", model.task]);
  rows.push(["Operations", facts.operations.count.toLocaleString("en")]);
  rows.push(["Parameters", `${scaled(p.elements, "")} in ${bytes(p.bytes)}`]);
  rows.push(["Multiply-adds", `${scaled(a.multiply_adds, "")}${a.unknown ? ", more in dynamic shapes" : ""}`]);
  if (m) {
    rows.push(["Constants", bytes(m.constants)]);
    for (const [name, arena] of Object.entries(m.arenas)) rows.push([`Arena, ${name}`, bytes(arena.bytes)]);
  }
  if (facts.runs) rows.push(["Backends", facts.runs.backends.map((b) => `${b.name} ${b.operations}`).join(", ") || "none"], ["Executor", `${facts.runs.executor}, ${plural(facts.runs.threads, "thread")}`]);
  if (estimate) rows.push(["Expected", `${micros(estimate.us)} (estimate)`]);
  if (profile && profile.median_us != null) rows.push(["Measured", micros(profile.median_us)]);
  rows.push(["Processor", machine.processor]);
  return rows;
};

const overviewPanel = (report) => {
  const { facts, model } = report;
  const node = el("div", { class: "overview" });
  if (report.error) node.append(el("p", { class: "error", role: "alert" }, el("strong", {}, "The model does not compile: "), report.error));
  node.append(figures(report));
  node.append(el("div", { class: "grid" },
    card("Inputs and outputs", ends("Input", facts.inputs), report.open_shapes && el("p", { class: "soft" }, report.open_shapes), ends("Output", facts.outputs)),
    card("Operations", kinds(report)),
    card("Backends", whereItRuns(report)),
    card("Parameters", facts.parameters.by_type.length ? el("div", {}, facts.parameters.by_type.map(([type, count, size]) => el("div", { class: "row" }, el("code", {}, type), bar(size / facts.parameters.bytes), el("span", { class: "n" }, `${scaled(count, "")}, ${bytes(size)}`)))) : empty("No parameters", "The model computes with its inputs alone.")),
    memoryCard(report),
    card("Time", timeWords(report)),
    card("Signatures and labels", signatures(facts, model)),
    card("Compiled with", pairs(Object.entries(report.options).map(([k, v]) => [k.replaceAll("_", " "), v])), el("p", { class: "soft" }, `${report.machine.processor}; onert ${report.onert}`)),
  ));
  if (model.notes.length) node.append(card("Notes", el("ul", { class: "notes" }, model.notes.map((note) => el("li", {}, note)))));
  return { node, show() {} };
};

const figures = (report) => {
  const { facts, estimate, profile } = report, arenas = facts.memory ? Object.values(facts.memory.arenas) : [];
  const time = profile && profile.median_us != null ? [micros(profile.median_us), "per run, measured"] : estimate ? [`≈ ${micros(estimate.us)}`, "per run, estimated"] : ["—", "not compiled"];
  const all = [time, [scaled(facts.operations.count, ""), "operations"], [scaled(facts.parameters.elements, ""), "parameters"], [scaled(facts.arithmetic.multiply_adds, ""), "multiply-adds"],
    [facts.memory ? bytes(facts.memory.constants + arenas.reduce((s, a) => s + a.bytes, 0)) : "—", "of memory"]];
  return el("div", { class: "figures" }, all.map(([number, words]) => el("div", {}, el("b", {}, number), el("span", {}, words))));
};

const ends = (what, all) => el("div", {}, all.map((end, at) => el("div", { class: "end" },
  el("div", {}, el("span", { class: "soft" }, `${what} ${at} `), el("strong", { class: "name" }, end.name)),
  el("div", {}, el("code", {}, `${end.dtype}${shape(end.shape)}`), end.taken && [", compiled for ", el("code", {}, shape(end.taken))], end.range && ` ${shown(end.range[0])} to ${shown(end.range[1])}`),
  end.quantization && el("div", { class: "soft" }, quantised(end.quantization)),
  end.other_names.length ? el("div", { class: "soft" }, `also ${end.other_names.join(", ")}`) : null)), all.length ? null : el("p", { class: "soft" }, `No ${what.toLowerCase()}s.`));

const kinds = (report) => {
  const all = report.facts.operations.by_kind, most = all.length ? all[0][1] : 1;
  const families = new Map(((report.graphs && report.graphs.operations) || []).map((o) => [o.kind, o.family]));
  const rows = all.map(([kind, count]) => el("div", { class: "row" }, el("span", { class: "name" }, kind), bar(count / most, familyColour(families.get(kind))), el("span", { class: "n" }, count)));
  if (rows.length <= 12) return rows.length ? el("div", {}, rows) : empty("No operations", "Its inputs are its outputs.");
  return el("div", {}, rows.slice(0, 10), el("details", {}, el("summary", {}, `${rows.length - 10} more kinds`), rows.slice(10)));
};

const whereItRuns = (report) => {
  const runs = report.facts.runs;
  if (!runs) return empty("Not compiled", "The model does not compile with these options; see the error above.");
  const whole = runs.backends.reduce((s, b) => s + b.operations, 0) || 1;
  const rows = runs.backends.map((b) => el("div", { class: "row" }, el("span", { class: "name" }, b.name), bar(b.operations / whole), el("span", { class: "n" }, `${b.operations} in ${plural(b.steps, "step")}`)));
  const falls = runs.notes.length ? el("details", { open: runs.notes.length < 6 }, el("summary", {}, `${plural(runs.notes.length, "operation")} not on ${report.backends[0]}`), el("ul", { class: "notes" }, runs.notes.map((n) => el("li", {}, n)))) : el("p", { class: "soft" }, `All operations run on ${report.backends[0]}.`);
  return el("div", {}, rows, falls, el("p", { class: "soft" }, `${runs.executor} executor, ${plural(runs.threads, "thread")}.`));
};

const memoryCard = (report) => {
  const m = report.facts.memory;
  if (!m) return card("Memory", empty("No memory plan", "The model is not compiled."));
  const rows = [["Constants", bytes(m.constants)], ["Inputs and outputs", bytes(m.inputs_and_outputs) + (m.open ? ", plus those with dynamic shapes" : "")],
    ...Object.entries(m.arenas).map(([name, a]) => [`Intermediate tensors, ${name}`, `${bytes(a.bytes)}${a.bytes > a.lower_bound ? `, lower bound ${bytes(a.lower_bound)}` : ", optimal"}`])];
  return card("Memory", pairs(rows));
};

const timeWords = (report) => {
  const { estimate, profile } = report, rows = [];
  if (profile && profile.error) return empty("The run failed", profile.error);
  if (profile) rows.push(["Measured", `${micros(profile.median_us)}, the median of ${plural(profile.runs, "run")}`], ["Fastest", micros(profile.least_us)], ["90% take at most", micros(profile.p90_us)]);
  if (estimate) rows.push(["Expected", `about ${micros(estimate.us)}, estimated from shapes and this machine's peaks${estimate.calls_subgraphs ? "; called subgraphs count once" : ""}`]);
  for (const [type, peak] of Object.entries(report.machine.flops_per_second)) rows.push([`Peak, ${type}`, scaled(peak, "op/s")]);
  rows.push(["Memory bandwidth", scaled(report.machine.bytes_per_second, "B/s")]);
  return pairs(rows);
};

const signatures = (facts, model) => {
  const found = facts.signatures.map((s) => el("div", { class: "end" }, el("strong", { class: "name" }, s.key), s.entered ? el("span", { class: "tag" }, "entered") : null, el("div", { class: "soft" }, `${s.inputs.join(", ") || "nothing"} → ${s.outputs.join(", ") || "nothing"}`)));
  const labels = model.labels.map((l) => el("details", {}, el("summary", {}, `${plural(l.count, "label")} in ${l.file}`), el("p", { class: "labels" }, l.labels.join(", "), l.count > l.labels.length ? ", …" : "")));
  return found.length || labels.length ? el("div", {}, found, labels) : empty("None", "The model has no signatures and comes with no labels.");
};

// Two reports side by side: differences, and the operations whose times differ most.
const comparison = (reports) => {
  const [a, b] = reports.map(overviewRows), names = [...new Set([...a, ...b].map(([what]) => what))];
  const rows = names.map((what) => [what, ...[a, b].map((rows_) => (rows_.find(([w]) => w === what) || [])[1] || "—")]);
  const options = [...new Set(reports.flatMap((r) => Object.keys(r.options)))].filter((k) => k !== "executor" && k !== "num_threads" && reports[0].options[k] !== reports[1].options[k]);
  rows.push(...options.map((k) => [`Option ${k.replaceAll("_", " ")}`, ...reports.map((r) => r.options[k] || "default")]));
  const body = rows.map(([what, x, y]) => el("tr", { class: x === y ? "" : "differs" }, el("th", { scope: "row" }, what), el("td", {}, x), el("td", {}, y), el("td", {}, x === y ? "" : "differs")));
  return card("Side by side", el("div", { class: "table" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}), reports.map((r, at) => el("th", { scope: "col" }, sideName(reports, at))), el("th", {}))), el("tbody", {}, body))), timesBeside(reports));
};
const sideName = (reports, at) => {
  const own = reports[at].model.name || "model";
  if (reports.length === 1 || reports[0].model.file !== reports[1].model.file) return own;
  const differs = Object.keys({ ...reports[0].options, ...reports[1].options }).filter((k) => reports[0].options[k] !== reports[1].options[k]);
  return differs.length ? `${own}, ${differs.map((k) => `${k.replaceAll("_", " ")} ${reports[at].options[k] || "default"}`).join(", ")}` : `${own} (${at ? "B" : "A"})`;
};
const timesBeside = (reports) => {
  if (!reports.every((r) => r.profile && r.profile.pieces)) return el("p", { class: "soft" }, "With --profile, this shows the times of operations side by side.");
  const sums = reports.map((r) => {
    const found = new Map();
    for (const p of r.profile.pieces) if (!p.calls) for (const at of [p.operations[0]]) { const key = whatIsPiece(r, p, at); found.set(key, (found.get(key) || 0) + p.us); }
    return found;
  });
  const rows = [...new Set([...sums[0].keys(), ...sums[1].keys()])].map((label) => ({ label, a: sums[0].get(label) || 0, b: sums[1].get(label) || 0 }));
  return el("div", {}, el("h3", {}, "Time by kind of operation"), table([
    { title: "Operation", text: (r) => r.label, by: (r) => r.label },
    { title: sideName(reports, 0), text: (r) => (r.a ? micros(r.a) : "—"), by: (r) => r.a, right: true },
    { title: sideName(reports, 1), text: (r) => (r.b ? micros(r.b) : "—"), by: (r) => r.b, right: true },
    { title: "Difference", text: (r) => (r.b >= r.a ? `+${micros(r.b - r.a)}` : `−${micros(r.a - r.b)}`), by: (r) => r.b - r.a, right: true },
  ], rows, { sort: { at: 3, down: true } }));
};
const whatIsPiece = (report, piece, at) => {
  const graph = lookups(report).compiled(piece.subgraph);
  return graph && graph.operations[at] ? lookups(report).operation(graph, at).kind : piece.label;
};
