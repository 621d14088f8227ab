// All tensors of the compiled model and its weights: types, quantisation, histograms.
const tensorsPanel = (report, side) => {
  const find = lookups(report), rows = [], seen = new Set();
  for (const each of report.subgraphs || []) {
    const graph = find.compiled(each.index) || (each.stages.length ? find.pool.graphs[each.stages[0].graph] : null);
    if (!graph) continue;
    const made = new Map(graph.operations.flatMap(([, , outs], at) => outs.map((o) => [o, at])));
    graph.tensors.forEach((number, at) => {
      const t = find.pool.tensors[number];
      if (t.constant !== null && seen.has(t.constant)) return;
      if (t.constant !== null) seen.add(t.constant);
      const role = t.constant !== null ? "constant" : graph.inputs.includes(at) ? "input" : graph.outputs.includes(at) ? "output" : t.variable ? "variable" : "between";
      rows.push({ t, at, index: each.index, role, made: made.get(at), name: tensorName(t, at), constant: t.constant === null ? null : (report.constants || [])[t.constant] });
    });
  }
  if (!rows.length) return { node: empty("No tensors", "The model has no subgraph with tensors."), show() {} };
  let role = rows.some((r) => r.role === "constant") ? "constant" : "all", words = "";
  const roles = ["constant", "between", "input", "output", "variable"].filter((r) => rows.some((row) => row.role === r));
  const detail = el("aside", { class: "detail" }, empty("Nothing is selected", "Select a tensor to see its quantisation and a histogram of its elements."));
  const columns = [
    { title: "Tensor", text: (r) => r.name, by: (r) => r.name, class: "name" },
    { title: "Type", cell: (r) => el("code", {}, r.t.type), by: (r) => r.t.type },
    { title: "Bytes", text: (r) => bytes(r.t.bytes), by: (r) => r.t.bytes || 0, right: true },
    { title: "Quantisation", text: (r) => quantised(r.t.quantization), by: (r) => (r.t.quantization ? r.t.quantization.least : -1), class: "soft" },
    { title: "Elements", cell: (r) => (r.constant ? histogram(r.constant) || "" : el("span", { class: "soft" }, r.role)), by: (r) => (r.constant && r.constant.high != null ? r.constant.high - r.constant.low : -1) },
  ];
  const list = table(columns, [], { sort: { at: 2, down: true }, words: "No tensor matches.", label: "Tensors", onrow: (r) => detail.replaceChildren(...tensorDetail(report, r, side)) });
  const apply = () => list.show(rows.filter((r) => (role === "all" || r.role === role) && (!words || `${r.name} ${r.t.type}`.toLowerCase().includes(words))));
  const filters = el("div", { class: "tools" },
    el("label", {}, "Show ", el("select", { onchange: (e) => { role = e.target.value; apply(); }, "aria-label": "Which tensors" }, ["all", ...roles].map((r) => el("option", { value: r, selected: r === role }, `${r === "all" ? "all" : { constant: "constants", between: "intermediate", input: "inputs", output: "outputs", variable: "variables" }[r]} (${r === "all" ? rows.length : rows.filter((row) => row.role === r).length})`)))),
    el("input", { type: "search", placeholder: "Name or type", "aria-label": "Filter tensors", oninput: debounced((e) => { words = e.target.value.trim().toLowerCase(); apply(); }) }));
  apply();
  return { node: el("div", { class: "split" }, el("div", {}, filters, list), detail), show() {}, find(name) { role = "all"; words = name.toLowerCase(); filters.querySelector("select").value = "all"; filters.querySelector("input").value = name; apply(); } };
};

const tensorDetail = (report, r, side) => {
  const c = r.constant, q = r.t.quantization;
  const many = q && q.scales.length > 1 ? ["First scales", q.scales.map(shown).join(", ") + (q.count > q.scales.length ? ", …" : "")] : null;
  return [el("h2", {}, r.name), pairs([
    ["Type", r.t.type], ["Bytes", bytes(r.t.bytes)], ["Role", r.role], q && ["Quantisation", quantised(q)], many, q && q.count > 1 && ["Zero points", q.zero_points.map(shown).join(", ") + (q.count > q.zero_points.length ? ", …" : "")],
    c && c.low != null && ["Range", `${shown(c.low)} to ${shown(c.high)}`], c && c.real_low != null && ["As real numbers", `${shown(c.real_low)} to ${shown(c.real_high)}`],
    c && c.mean != null && ["Mean, deviation", `${shown(c.mean)}, ${shown(c.deviation)}`], c && c.zeros > 0 && ["Zeros", percent(c.zeros)], c && c.not_finite > 0 && ["Not finite", String(c.not_finite)],
    c && c.sampled && ["A sample of", `${c.sampled.toLocaleString("en")} of ${c.elements.toLocaleString("en")}`],
  ]), c ? el("div", { class: "tall" }, histogram(c)) : null,
  r.made != null ? button("Show its operation", "", () => tell("go", { side, index: r.index, at: r.made })) : null].filter(Boolean);
};
