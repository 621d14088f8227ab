// The side panel's description of the selected operation, group, input or output.
const detailOf = (report, n, { pieceOf, placesOf, estimateOf, backendOf, open, go }) => {
  if (!n) return [empty("Nothing is selected", "Select an operation to see its attributes, its backend and why it was chosen, its tensors and its time.")];
  const { graph } = n.scene, find = lookups(report);
  if (n.kind === "input" || n.kind === "output") {
    return [el("h2", {}, n.kind === "input" ? "Input" : "Output"), tensorLine(report, graph, n.tensor)];
  }
  const parts = [el("h2", {}, n.title)];
  if (n.kind === "group") parts.push(el("p", { class: "soft" }, "These operations run as one kernel, so their intermediate results need not be stored."));
  const piece = pieceOf(n), guess = estimateOf(n), places = placesOf(n), backend = backendOf(n);
  const flops = piece ? piece.flops : guess && guess.flops, moved = piece ? piece.bytes : guess && guess.bytes;
  parts.push(pairs([
    backend && ["Runs on", `${backend}, step ${places.operations[n.operations[0]][0]}`],
    piece && ["Time", `${micros(piece.us)}${piece.calls ? " including the subgraphs it calls" : `, ${percent(piece.us / find.whole)} of a run`}`],
    guess && !piece && ["Expected", `about ${micros(guess.us)}`],
    flops != null && ["Arithmetic", `${scaled(flops, "")} operations${piece && piece.us && flops ? `, ${scaled(flops / piece.us * 1e6, "op/s")}` : ""}`],
    moved != null && ["Memory", `${bytes(moved)} read and written`],
    flops && moved && ["Intensity", `${shown(flops / moved)} operations per byte`],
  ]));
  for (const at of n.operations) parts.push(...oneOperation(report, n, at, places, { open, go }));
  return parts;
};

const oneOperation = (report, n, at, places, { open }) => {
  const { graph } = n.scene, find = lookups(report), op = find.operation(graph, at), [, ins, outs] = graph.operations[at];
  const parts = [];
  if (n.operations.length > 1) parts.push(el("h3", {}, op.kind));
  const rows = [op.location && ["In the file", op.location], ...op.attributes.map(([name, value]) => [name.replaceAll("_", " "), value])];
  parts.push(pairs(rows));
  if (places) {
    const refused = places.operations[at][2];
    const own = places.operations[at][0] === null ? null : places.steps[places.operations[at][0]].backend;
    const said = new Map(refused);
    const first = report.backends.indexOf(own);
    parts.push(el("h3", {}, "Choice of backend"));
    parts.push(el("ul", { class: "why" }, report.backends.map((name, position) => el("li", { class: name === own ? "here" : "" }, el("b", {}, name), " ",
      name === own ? "runs it" : said.has(name) ? places.reasons[said.get(name)] : position > first ? "could run it, but comes later" : "could run it, but was not chosen"))));
  }
  for (const index of new Set(op.calls)) if (find.subgraph(index)) parts.push(button(`Open subgraph ${index}${find.subgraph(index).name ? ` ${find.subgraph(index).name}` : ""}`, "", () => open(index, n.scene.compiled ? null : 0)));
  if (ins.length) parts.push(el("h3", {}, "Reads"), ...ins.map((i) => (i === null ? el("p", { class: "soft" }, "absent") : tensorLine(report, graph, i))));
  if (outs.length) parts.push(el("h3", {}, "Writes"), ...outs.map((o) => tensorLine(report, graph, o)));
  return parts;
};

const tensorLine = (report, graph, at) => {
  const t = lookups(report).tensor(graph, at);
  const kind = t.constant !== null ? "constant" : t.variable ? "variable" : "";
  return el("div", { class: "tensor" },
    el("div", { class: "tensor-name" }, tensorName(t, at)),
    el("div", {}, el("code", {}, t.type), ` ${t.bytes == null ? "dynamic size" : bytes(t.bytes)}`, kind && el("span", { class: "tag" }, kind)),
    t.quantization && el("div", { class: "soft" }, quantised(t.quantization)),
    t.constant !== null && histogram((report.constants || [])[t.constant]));
};

// A small histogram of a constant's elements, with their range.
const histogram = (constant) => {
  if (!constant) return null;
  if (!constant.histogram || constant.first.length) return constant.first.length ? el("div", { class: "soft" }, constant.first.join(", ")) : null;
  const { counts } = constant.histogram, most = Math.max(...counts, 1);
  const bars = el("div", { class: "bins", role: "img", "aria-label": `Histogram from ${shown(constant.low)} to ${shown(constant.high)}` });
  for (const count of counts) { const b = el("i"); b.style.height = `${count ? Math.max(4, 100 * count / most) : 0}%`; bars.append(b); }
  const real = constant.real_low != null ? ` (${shown(constant.real_low)} to ${shown(constant.real_high)})` : "";
  return el("div", {}, bars, el("div", { class: "ends soft" }, el("span", {}, shown(constant.low)), real && el("span", {}, real.trim()), el("span", {}, shown(constant.high))));
};
