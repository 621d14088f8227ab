// The graph panel: choosing a subgraph and stage, collapsing, colours, and details of the selected operation.
const COLOURS = [["family", "kind"], ["time", "time"], ["intensity", "arithmetic intensity"], ["backend", "backend"]];

const graphPanel = (report, side) => {
  const subgraphs = report.subgraphs || [];
  if (!subgraphs.some((s) => s.stages.length)) return { node: empty("There is no graph", "The report was created without graphs."), show() {} };
  const entry = subgraphs.find((s) => s.index === report.entry) || subgraphs[0];
  let index = entry.index, stage = stagesOf(report, index).length - 1, by = "family", unfolded = false, running = 0;
  const turned = new Set(); // nodes that the user collapsed or expanded
  const folded = (id, kind, path = "") => turned.has(`${index}${path}/${id}`) === unfolded;

  const stageBox = el("ol", { class: "stages", "aria-label": "Stages of the compiler" });
  const state_ = el("span", { class: "soft" });
  const choose = el("select", { "aria-label": "Subgraph", onchange: () => open(+choose.value, null) },
    subgraphs.map((s) => el("option", { value: s.index }, `${s.index === report.entry ? "entry" : `subgraph ${s.index}`}${s.name ? ` ${s.name}` : ""}`)));
  const colourBy = el("select", { "aria-label": "Colour by", onchange: () => { by = colourBy.value; view.redraw(); legendNow(); } },
    COLOURS.filter(([key]) => key !== "time" || (report.profile && report.profile.pieces)).map(([key, words]) => el("option", { value: key }, words)));
  const foldAll = button("Expand all", "Expand or collapse all groups and bodies (e)", () => { unfolded = !unfolded; turned.clear(); foldAll.textContent = unfolded ? "Collapse all" : "Expand all"; run(); });
  const legendBox = el("div", { class: "graph-legend" });
  const stats = el("p", { class: "stage-note" });
  const box = el("div", { class: "graph-box" });
  const detail = el("aside", { class: "detail", "aria-live": "polite" });
  const node = el("div", { class: "graph" },
    el("div", { class: "tools" },
      subgraphs.length > 1 ? el("label", {}, "Subgraph ", choose) : null, el("label", {}, "Colour by ", colourBy), foldAll,
      button("Fit", "Show the whole graph (f)", () => view.fit()), button("−", "Zoom out (-)", () => view.zoom(0.8), { "aria-label": "Zoom out" }), button("+", "Zoom in (+)", () => view.zoom(1.25), { "aria-label": "Zoom in" }), state_),
    el("div", { class: "graph-body" }, el("div", { class: "stage-box" }, el("h2", {}, "Compiler passes"), stageBox, stats), box, detail), legendBox);

  const scene = () => {
    const all = stagesOf(report, index), now = all[stage];
    return { report, graph: lookups(report).pool.graphs[now.graph], subgraph: index, compiled: now.name === "compiled", stage: now.name };
  };
  const colourOf = (n) => {
    const family = familyColour(n.family);
    if (n.kind === "input" || n.kind === "output") return { strip: css("--soft") };
    const piece = pieceOf(n), share = piece && !piece.calls ? piece.us / lookups(report).whole : 0;
    const badge = piece && share >= 0.005 ? percent(share) : "";
    if (by === "time") return { strip: family, fill: heat(Math.sqrt(share * 4)), badge };
    if (by === "backend") return { strip: backendColour(backendOf(n)), badge };
    if (by === "intensity") { const e = estimateOf(n); return { strip: family, fill: e && e.bytes ? heat(Math.log10(1 + e.flops / e.bytes) / 2.2) : undefined }; }
    return { strip: family, badge };
  };
  const placesOf = (n) => (n.scene && n.scene.compiled && n.scene.subgraph !== null ? (lookups(report).subgraph(n.scene.subgraph) || {}).places : null);
  const pieceOf = (n) => (placesOf(n) && n.operations.length ? n.operations.map((at) => lookups(report).piece(n.scene.subgraph, at)).find(Boolean) : null);
  const estimates = new Map(((report.estimate && report.estimate.groups) || []).flatMap((g) => g.operations.map((at) => [`${g.subgraph}:${at}`, g])));
  const estimateOf = (n) => (placesOf(n) && n.operations.length ? estimates.get(`${n.scene.subgraph}:${n.operations[0]}`) : null);
  const backendOf = (n) => {
    const p = placesOf(n), at = n.operations[0];
    return p && p.operations[at] && p.operations[at][0] !== null ? p.steps[p.operations[at][0]].backend : null;
  };
  const backendColour = (name) => Object.keys(FAMILIES).map(familyColour)[[0, 1, 2, 5, 4][Math.max(0, report.backends.indexOf(name)) % 5]];
  const view = graphCanvas(box, { onselect: (n) => detail.replaceChildren(...detailOf(report, n, { pieceOf, placesOf, estimateOf, backendOf, open, go })), onfold: fold, colour: colourOf });

  function fold(n) {
    const key = `${index}${n.path}`;
    if (turned.has(key)) turned.delete(key); else turned.add(key);
    run({ keep: n.path });
  }
  // Lay out the graph in time slices, so that the page stays responsive. A newer call cancels an older one.
  function run(how = {}) {
    const own = ++running, now = scene(), steps = layout(now, itemsOf(now, folded), folded);
    const go_ = () => {
      if (own !== running) return;
      const end = performance.now() + 24;
      for (let last = steps.next(); ; last = steps.next()) {
        if (last.done) { state_.textContent = ""; view.show(last.value, how); marks(); if (how.then) how.then(); tell("laid out", { side }); return; }
        if (performance.now() > end) { state_.textContent = `Laying out… ${percent(last.value.done)}`; setTimeout(go_); return; }
      }
    };
    go_();
  }
  // Mark the operations that the previous stage did not have.
  function marks() {
    const all = stagesOf(report, index), paths = new Set();
    if (stage > 0 && all[stage].name !== "compiled") {
      const changes = changed(report, all[stage - 1].graph, all[stage].graph);
      for (const at of changes.added) paths.add(`/o${at}`);
      stats.textContent = `${plural(changes.added.length, "operation")} added or changed here (outlined), ${changes.gone.toLocaleString("en")} of the previous stage removed.`;
    } else stats.textContent = stage ? "Fused groups run as one kernel. The side panel shows where each operation runs." : "The graph in the model file, before any pass.";
    view.mark(paths);
  }
  function open(newIndex, newStage, how = {}) {
    index = newIndex;
    const all = stagesOf(report, index);
    stage = newStage === null ? all.length - 1 : Math.max(0, Math.min(all.length - 1, newStage));
    choose.value = String(index);
    stageBox.replaceChildren(...all.map((s, at) => {
      const graph = lookups(report).pool.graphs[s.graph];
      return el("li", {}, el("button", { class: at === stage ? "stage now" : "stage", "aria-current": at === stage ? "step" : null, onclick: () => open(index, at) }, el("span", {}, stageTitle(s.name)), el("b", {}, graph.operations.length)));
    }));
    run(how);
    legendNow();
    detail.replaceChildren(...detailOf(report, null, {}));
  }
  // Go to an operation of a subgraph, by default in its last stage.
  function go(subgraph, at, wantedStage = null) {
    const then = () => {
      const n = view.node((m) => m.scene && m.scene.subgraph === subgraph && m.operations.includes(at) && (m.kind === "operation" || !m.open));
      if (n) view.select(n, { go: true });
    };
    if (subgraph === index && (wantedStage === null ? stagesOf(report, index).length - 1 : wantedStage) === stage && view.found) then();
    else open(subgraph, wantedStage, { then });
  }
  function legendNow() {
    const families = new Set(scene().graph.operations.map((_, at) => lookups(report).operation(scene().graph, at).family));
    const words = { time: "Darker means a larger share of the run's time.", intensity: "Darker means more arithmetic per byte." };
    legendBox.replaceChildren(by === "backend" ? el("ul", { class: "legend" }, report.backends.map((b) => el("li", {}, swatch(backendColour(b)), b))) : by === "family" ? legend(families) : el("p", { class: "soft" }, words[by]));
  }
  node.addEventListener("keydown", (e) => {
    if (e.target.matches("input, select") || e.ctrlKey || e.metaKey) return;
    if (e.key === "e") foldAll.click();
    else if (e.key === "[") open(index, stage - 1);
    else if (e.key === "]") open(index, stage + 1);
    else return;
    e.preventDefault();
  });
  open(index, stage);
  listen((what) => { if (what === "theme" && node.isConnected) legendNow(); });
  return { node, go, view, show() { view.redraw(); } };
};

// The operations added by a stage and the number removed, compared by kind and tensors.
const changed = (report, before, after) => {
  const { graphs } = lookups(report).pool, left = new Map();
  const key = (g, [op, ins, outs]) => `${op}|${ins.map((i) => (i === null ? "" : g.tensors[i]))}|${outs.map((o) => g.tensors[o])}`;
  for (const o of graphs[before].operations) { const k = key(graphs[before], o); left.set(k, (left.get(k) || 0) + 1); }
  const added = [];
  graphs[after].operations.forEach((o, at) => { const k = key(graphs[after], o); if (left.get(k)) left.set(k, left.get(k) - 1); else added.push(at); });
  return { added, gone: [...left.values()].reduce((s, n) => s + n, 0) };
};
