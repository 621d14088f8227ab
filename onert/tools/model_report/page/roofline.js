// The roofline: each operation's arithmetic per byte of memory traffic, and how near it comes to the machine's peaks.
const rooflinePanel = (report, side) => {
  const { machine, profile } = report, peaks = Object.entries(machine.flops_per_second), bandwidth = machine.bytes_per_second;
  const measured = profile && profile.pieces;
  const stored = new Set(((report.estimate && report.estimate.groups) || []).filter((g) => g.stored).map((g) => `${g.subgraph}:${g.operations[0]}`));
  const isStored = (p) => stored.has(`${p.subgraph}:${p.operations[0]}`);
  const source = measured ? profile.pieces.filter((p) => !p.calls) : (report.estimate && report.estimate.groups) || [];
  const CACHE = 1 << 20; // bytes of tensors that are assumed to stay in caches between operations
  const cached = machine.cached_bytes_per_second, speed = (p) => (p.bytes <= CACHE ? cached : bandwidth);
  const roof = (intensity, p) => Math.min(intensity * speed(p), machine.flops_per_second[isStored(p) ? "int8" : "float32"] || Math.max(...peaks.map((x) => x[1])));
  const points = source.filter((p) => p.flops > 0 && p.bytes > 0).map((p) => {
    const intensity = p.flops / p.bytes, family = familyOf(report, p.subgraph, p.operations[0]);
    return { p, intensity, family, rate: measured ? p.flops / p.us * 1e6 : roof(intensity, p), us: p.us, label: p.label || labelOfGroup(report, p) };
  }).filter((x) => x.rate > 0 && Number.isFinite(x.rate));
  if (!peaks.length || !points.length) return { node: empty("No points to draw", report.error ? "The model is not compiled." : "No operation of this model computes on tensors with static shapes."), show() {} };
  const whole = points.reduce((s, x) => s + x.us, 0) || 1, L = 76, R = 18, T = 18, B = 40;
  const xs = points.map((x) => x.intensity), ys = points.map((x) => x.rate), top = Math.max(...peaks.map((p) => p[1])), knee = top / bandwidth;
  const logs = { x0: Math.floor(Math.log10(Math.min(...xs, 0.1))), x1: Math.ceil(Math.log10(Math.max(...xs, knee * 2))), y1: Math.log10(Math.max(top, ...ys) * 2) };
  logs.y0 = Math.max(logs.y1 - 7, Math.floor(Math.log10(Math.max(1, Math.min(...ys) * 0.7))));
  let hovered = null, spots = [];
  const box = el("div", { class: "chart" });
  const chart = canvasIn(box, () => Math.max(300, Math.min(520, box.clientWidth * 0.55)), (c, w, h) => {
    const x = (v) => L + ((Math.log10(v) - logs.x0) / (logs.x1 - logs.x0)) * (w - L - R), y = (v) => h - B - ((Math.log10(v) - logs.y0) / (logs.y1 - logs.y0)) * (h - T - B);
    for (let e = logs.x0; e <= logs.x1; e++) { rule(c, x(10 ** e), T, x(10 ** e), h - B); text(c, e >= 0 ? String(10 ** e) : (10 ** e).toFixed(-e), x(10 ** e), h - B + 13, { align: "center" }); }
    for (let e = Math.ceil(logs.y0); e <= logs.y1; e++) { rule(c, L, y(10 ** e), w - R, y(10 ** e)); text(c, scaled(10 ** e, "op/s"), L - 8, y(10 ** e), { align: "right" }); }
    text(c, "arithmetic operations per byte read or written", (L + w - R) / 2, h - 10, { align: "center", size: 11 });
    c.save(); c.beginPath(); c.rect(L, 0, w - L - R, h - B); c.clip();
    for (const [name, peak] of [...peaks].sort((a, b) => b[1] - a[1])) {
      c.strokeStyle = css("--text"); c.lineWidth = name === "float32" ? 2 : 1.4; c.setLineDash(name === "float32" ? [] : [7, 4]);
      c.beginPath(); c.moveTo(x(10 ** logs.x0), y(10 ** logs.x0 * bandwidth)); c.lineTo(x(peak / bandwidth), y(peak)); c.lineTo(w - R, y(peak)); c.stroke(); c.setLineDash([]);
      text(c, `${name} ${scaled(peak, "op/s")}`, w - R - 6, y(peak) - 9, { align: "right", colour: css("--text"), weight: 600 });
    }
    c.strokeStyle = css("--soft"); c.lineWidth = 1.2; c.setLineDash([2, 4]);
    c.beginPath(); c.moveTo(x(10 ** logs.x0), y(10 ** logs.x0 * cached)); c.lineTo(x(top / cached), y(top)); c.stroke(); c.setLineDash([]);
    for (const [name, rate, below] of [["memory", bandwidth, 12], ["caches", cached, -9]]) {
      const at = Math.max(10 ** (logs.x0 + 0.15), (10 ** logs.y0 / rate) * 1.6);
      c.save(); c.translate(x(at), y(at * rate)); c.rotate(Math.atan2(y(at * 10 * rate) - y(at * rate), x(at * 10) - x(at))); text(c, `${name} ${scaled(rate, "B/s")}`, 0, below, { colour: css("--text"), weight: 600 }); c.restore();
    }
    spots = points.map((d) => ({ d, x: x(d.intensity), y: y(Math.max(d.rate, 10 ** logs.y0)), r: measured ? 3.5 + 15 * Math.sqrt(d.us / whole) : 4.5 }));
    for (const s of [...spots].sort((a, b) => b.r - a.r)) {
      c.beginPath(); c.arc(s.x, s.y, s.r, 0, 7);
      c.fillStyle = familyColour(s.d.family); c.globalAlpha = hovered && hovered.d !== s.d ? 0.35 : measured ? 0.78 : 0.25; c.fill(); c.globalAlpha = 1;
      c.strokeStyle = hovered && hovered.d === s.d ? css("--text") : measured ? css("--card") : familyColour(s.d.family); c.lineWidth = 1.3; c.stroke();
    }
    c.restore();
  }, "Roofline: arithmetic intensity against arithmetic a second");
  const nearest = (e) => spots.map((s) => ({ s, far: Math.hypot(s.x - e.offsetX, s.y - e.offsetY) - s.r })).filter((f) => f.far < 5).sort((a, b) => a.s.r - b.s.r)[0];
  const told = (d) => [d.label, `${shown(d.intensity)} operations a byte`, measured ? `${scaled(d.rate, "op/s")}, ${percent(d.rate / roof(d.intensity, d.p))} of the roof` : `at most ${scaled(d.rate, "op/s")}`, measured ? micros(d.us) : `about ${micros(d.us)}`];
  chart.canvas.addEventListener("mousemove", (e) => { const f = nearest(e); if ((f && f.s.d) !== (hovered && hovered.d)) { hovered = f ? f.s : null; chart.redraw(); } if (f) tip.show(e, told(f.s.d)); else tip.hide(); });
  chart.canvas.addEventListener("mouseleave", () => { hovered = null; tip.hide(); chart.redraw(); });
  chart.canvas.addEventListener("click", (e) => { const f = nearest(e); if (f) tell("go", { side, index: f.s.d.p.subgraph, at: f.s.d.p.operations[0] }); });
  const limit = (d) => (d.intensity * speed(d.p) >= roof(1e12, d.p) ? "arithmetic" : d.p.bytes <= CACHE ? "caches" : "memory");
  const list = table([
    { title: "Operation", cell: (d) => el("span", {}, swatch(familyColour(d.family)), d.label), by: (d) => d.label, class: "name" },
    { title: "Operations per byte", text: (d) => shown(d.intensity), by: (d) => d.intensity, right: true },
    { title: measured ? "Reached" : "At most", text: (d) => scaled(d.rate, "op/s"), by: (d) => d.rate, right: true },
    ...(measured ? [{ title: "Of the roof", cell: (d) => el("span", { class: "share" }, bar(d.rate / roof(d.intensity, d.p), familyColour(d.family)), el("span", {}, percent(d.rate / roof(d.intensity, d.p)))), by: (d) => d.rate / roof(d.intensity, d.p) }] : []),
    { title: "Bound by", text: limit, by: limit }, { title: measured ? "Time" : "Expected", text: (d) => micros(d.us), by: (d) => d.us, right: true },
  ], points, { sort: { at: measured ? 5 : 4, down: true }, label: "Operations on the roofline", onrow: (d) => tell("go", { side, index: d.p.subgraph, at: d.p.operations[0] }) });
  const words = measured ? "Each point is an operation; its area is its time. Below the slopes, memory traffic is the limit (of the caches if an operation touches at most 1 MiB, otherwise of memory); below the flat part, arithmetic is. The peaks are those of onert's own matrix products and of array copies on this machine."
    : "No run was measured, so each operation is drawn at its upper limit, on the roof. Create this page with --profile to see how near it comes.";
  return { node: el("div", {}, card("Roofline of this machine", el("p", { class: "soft" }, `${machine.processor}, ${plural(machine.threads, "thread")}. ${words}`), box, legend(new Set(points.map((d) => d.family)))), card("By operation", list)), show() {} };
};
const labelOfGroup = (report, g) => {
  const graph = lookups(report).compiled(g.subgraph);
  return graph ? g.operations.map((at) => lookups(report).operation(graph, at).kind).slice(0, 3).join(" + ") : "operation";
};
