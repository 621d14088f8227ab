// The memory plan: tensors as bars over time and offset, the bytes in use, and the tensors in use at the peak.
const memoryPanel = (report, side) => {
  const all = (report.subgraphs || []).flatMap((s) => (s.arenas || []).map((arena) => ({ index: s.index, name: s.name, arena })));
  const drawn = all.filter((a) => a.arena.bars.length);
  if (!drawn.length) return { node: empty("Nothing is planned", report.error ? "The model is not compiled." : "The plan covers intermediate tensors with static sizes, and this model has none. Inputs, outputs and constants are not part of it."), show() {} };
  const box = el("div", {});
  const choose = el("select", { "aria-label": "Arena", onchange: () => render(drawn[+choose.value]) }, drawn.map((d, at) => el("option", { value: at }, `${d.index === report.entry ? "entry" : `subgraph ${d.index}`} ${d.name}, ${d.arena.space}, ${bytes(d.arena.bytes)}`)));
  const render = (d) => box.replaceChildren(arenaChart(report, d, side));
  const first = Math.max(0, drawn.findIndex((d) => d.index === report.entry));
  choose.value = String(first);
  render(drawn[first]);
  return { node: el("div", {}, drawn.length > 1 ? el("div", { class: "tools" }, el("label", {}, "Arena ", choose)) : null, box), show() {} };
};

const arenaChart = (report, { index, arena }, side) => {
  const find = lookups(report), graph = find.compiled(index);
  const made = new Map(graph.operations.flatMap(([, , outs], at) => outs.map((o) => [o, at])));
  const bars = arena.bars.map(([operands, offset, size, from, to], number) => {
    const maker = operands.map((o) => made.get(o)).find((at) => at !== undefined);
    return { number, operands, offset, size, from, to, maker, family: maker === undefined ? "other" : find.operation(graph, maker).family, name: tensorName(find.tensor(graph, operands[0]), operands[0]) };
  });
  const moments = arena.moments.length, view = { from: 0, to: 1 }, L = 72, R = 14, T = 14, B = 26;
  const owners = new Set(arena.peak ? arena.peak.owners : []);
  let hovered = null;
  const xOf = (w) => (m) => L + ((m / moments - view.from) / (view.to - view.from)) * (w - L - R);
  const place = el("div", { class: "chart" }), useBox = el("div", { class: "chart" });
  const top = Math.max(arena.bytes, arena.lower_bound, 1);
  const chart = canvasIn(place, 380, (c, w, h) => {
    const x = xOf(w), y = (o) => h - B - (o / top) * (h - T - B);
    for (const v of byteTicks(top, 6)) { rule(c, L, y(v), w - R, y(v)); text(c, bytes(v), L - 8, y(v), { align: "right" }); }
    c.save();
    c.beginPath();
    c.rect(L, 0, w - L - R, h);
    c.clip();
    if (arena.peak) { c.fillStyle = css("--peak"); c.fillRect(x(arena.peak.moment), T, Math.max(2, x(arena.peak.moment + 1) - x(arena.peak.moment)), h - T - B); }
    for (const b of bars) {
      const x1 = x(b.from), x2 = x(b.to + 1), y1 = y(b.offset + b.size), tall = y(b.offset) - y1;
      if (x2 < L || x1 > w - R) continue;
      c.globalAlpha = hovered && hovered !== b ? 0.45 : owners.has(b.number) ? 1 : 0.62;
      c.fillStyle = familyColour(b.family);
      c.fillRect(x1 + 0.5, y1 + 0.5, Math.max(1, x2 - x1 - 1), Math.max(0.8, tall - 1));
      if (owners.has(b.number) || hovered === b) { c.globalAlpha = 1; c.strokeStyle = css("--text"); c.lineWidth = 1.2; c.strokeRect(x1 + 0.5, y1 + 0.5, Math.max(1, x2 - x1 - 1), Math.max(0.8, tall - 1)); }
      if (x2 - x1 > 60 && tall > 13) { c.globalAlpha = 1; c.font = `600 10.5px ${FONT}`; text(c, fitting(c, b.name, x2 - Math.max(x1, L) - 8), Math.max(x1, L) + 4, y1 + tall / 2, { colour: isDark() ? "#10151c" : "#fff", size: 10.5, weight: 600 }); }
    }
    c.globalAlpha = 1;
    c.restore();
    if (arena.lower_bound && arena.lower_bound < arena.bytes) { rule(c, L, y(arena.lower_bound), w - R, y(arena.lower_bound), css("--text"), [5, 4]); text(c, "lower bound of any plan", w - R - 4, y(arena.lower_bound) - 8, { align: "right" }); }
    for (const m of ticks(view.from * moments, view.to * moments, Math.max(2, w / 110))) if (Number.isInteger(m)) text(c, String(m), x(m), h - B + 12, { align: "center" });
    text(c, "moment", w - R, h - 6, { align: "right", size: 10 });
  }, "Memory plan: tensors as bars over time and offset");
  const use = canvasIn(useBox, 120, (c, w, h) => {
    const x = xOf(w), most = Math.max(...arena.use, 1), y = (v) => h - 16 - (v / most) * (h - 30);
    for (const v of byteTicks(most, 3)) { rule(c, L, y(v), w - R, y(v)); text(c, bytes(v), L - 8, y(v), { align: "right" }); }
    c.save(); c.beginPath(); c.rect(L, 0, w - L - R, h); c.clip();
    stepArea(c, arena.use.map((v, m) => [m, v]), moments, x, y, h - 16, css("--accent"));
    if (arena.peak) { const px = x(arena.peak.moment + 0.5); c.fillStyle = css("--accent"); c.beginPath(); c.arc(px, y(arena.peak.bytes), 4, 0, 7); c.fill(); }
    c.restore();
  }, "Bytes in use over time");
  const redraw = () => { chart.redraw(); use.redraw(); };
  zoomable(chart.canvas, view, redraw, L, R);
  const under = (e) => {
    const w = chart.canvas.clientWidth, h = 380, m = ((e.offsetX - L) / (w - L - R) * (view.to - view.from) + view.from) * moments, o = ((h - B - e.offsetY) / (h - T - B)) * top;
    return bars.find((b) => m >= b.from && m < b.to + 1 && o >= b.offset && o < b.offset + b.size) || null;
  };
  chart.canvas.addEventListener("mousemove", (e) => {
    const now = under(e);
    if (now !== hovered) { hovered = now; chart.redraw(); }
    if (now) tip.show(e, [now.name, find.tensor(graph, now.operands[0]).type, `${bytes(now.size)} at ${now.offset.toLocaleString("en")}`, `moments ${now.from} to ${now.to}`, now.operands.length > 1 && `shared by ${now.operands.length} tensors`, owners.has(now.number) && "in use at the peak"]); else tip.hide();
  });
  chart.canvas.addEventListener("mouseleave", () => { hovered = null; tip.hide(); chart.redraw(); });
  chart.canvas.addEventListener("click", (e) => { const b = under(e); if (b && b.maker !== undefined && e.detail === 1) hovered = b; });
  const owned = (arena.peak ? arena.peak.owners : []).map((n) => bars[n]), sum = owned.reduce((s, b) => s + b.size, 0) || 1;
  const list = table([
    { title: "In use at the peak", text: (b) => b.name, by: (b) => b.name, class: "name" },
    { title: "Type", cell: (b) => el("code", {}, find.tensor(graph, b.operands[0]).type), by: (b) => find.tensor(graph, b.operands[0]).type },
    { title: "Bytes", text: (b) => bytes(b.size), by: (b) => b.size, right: true },
    { title: "Share", cell: (b) => bar(b.size / sum, familyColour(b.family)), by: (b) => b.size },
    { title: "Moments", text: (b) => `${b.from} – ${b.to}`, by: (b) => b.from, right: true },
  ], owned, { sort: { at: 2, down: true }, label: "Tensors in use at the peak", onrow: (b) => b.maker !== undefined && tell("go", { side, index, at: b.maker }) });
  return el("div", {},
    el("div", { class: "figures small" }, el("div", {}, el("b", {}, bytes(arena.bytes)), el("span", {}, `arena, planned by ${arena.planner}`)), el("div", {}, el("b", {}, bytes(arena.lower_bound)), el("span", {}, "lower bound of any plan")),
      el("div", {}, el("b", {}, arena.peak ? bytes(arena.peak.bytes) : "—"), el("span", {}, arena.peak ? `in use at moment ${arena.peak.moment}` : "nothing in use")), el("div", {}, el("b", {}, bars.length), el("span", {}, "memory blocks"))),
    card("Tensors over time", el("p", { class: "soft" }, "Each bar is the memory of a tensor, from the moment that writes it to the last one that reads it. Outlined bars are in use at the peak. Scroll with Ctrl to zoom, drag to move."), place, legend(new Set(bars.map((b) => b.family)))),
    card("Bytes in use", useBox), card("Tensors at the peak", list));
};
