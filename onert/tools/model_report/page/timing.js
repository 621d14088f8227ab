// The measured run: a timeline of pieces by thread, memory in use, and time by operation.
const timingPanel = (report, side) => {
  const profile = report.profile;
  if (!profile) return { node: empty("No run was measured", state.live ? "Press “Measure” above to run the model on random inputs and time it." : "Create this page with --profile to run the model on random inputs and see when each operation ran and how long it took."), show() {} };
  if (profile.error) return { node: empty("The run failed", profile.error), show() {} };
  const pieces = profile.pieces.map((p, number) => ({ ...p, number, family: familyOf(report, p.subgraph, p.operations[0]), share: p.calls ? 0 : p.us / lookups(report).whole }));
  const go = (p) => tell("go", { side, index: p.subgraph, at: p.operations[0] });
  const byKind = new Map();
  for (const p of pieces) {
    if (p.calls) continue;
    const graph = lookups(report).compiled(p.subgraph), kind = graph ? lookups(report).operation(graph, p.operations[0]).kind : p.label;
    const found = byKind.get(kind) || { kind, family: p.family, us: 0, count: 0, flops: 0, bytes: 0 };
    found.us += p.us; found.count++; found.flops += p.flops; found.bytes += p.bytes;
    byKind.set(kind, found);
  }
  const most = Math.max(...pieces.map((p) => p.share), 1e-9), whole = lookups(report).whole;
  const rate = (p) => (p.us ? p.flops / p.us * 1e6 : 0);
  const rows = table([
    { title: "Operation", cell: (p) => el("span", {}, swatch(familyColour(p.family)), p.label), by: (p) => p.label, class: "name" },
    { title: "Backend", text: (p) => p.backend, by: (p) => p.backend },
    { title: "Time", text: (p) => micros(p.us), by: (p) => p.us, right: true },
    { title: "Share", cell: (p) => el("span", { class: "share" }, bar(p.share / most, familyColour(p.family)), el("span", {}, p.calls ? "included in others" : percent(p.share))), by: (p) => p.share },
    { title: "Arithmetic", text: (p) => (p.flops ? scaled(rate(p), "op/s") : "—"), by: rate, right: true },
    { title: "Memory", text: (p) => (p.us ? scaled(p.bytes / p.us * 1e6, "B/s") : "—"), by: (p) => p.bytes / (p.us || 1), right: true },
  ], pieces, { sort: { at: 2, down: true }, onrow: go, label: "Time by operation" });
  const kindRows = [...byKind.values()].sort((a, b) => b.us - a.us);
  const kindsBox = el("div", {}, kindRows.slice(0, 12).map((k) => el("div", { class: "row" }, el("span", { class: "name" }, `${k.kind}${k.count > 1 ? ` × ${k.count}` : ""}`), bar(k.us / kindRows[0].us, familyColour(k.family)), el("span", { class: "n" }, `${micros(k.us)}, ${percent(k.us / whole)}`))));
  const node = el("div", {},
    el("div", { class: "figures small" }, el("div", {}, el("b", {}, micros(profile.median_us)), el("span", {}, `median of ${plural(profile.runs, "run")}`)), el("div", {}, el("b", {}, micros(profile.least_us)), el("span", {}, "fastest")),
      el("div", {}, el("b", {}, micros(profile.p90_us)), el("span", {}, "90% take at most")), el("div", {}, el("b", {}, micros(profile.observed_us)), el("span", {}, "the observed run below"))),
    card("Timeline of one run", el("p", { class: "soft" }, "Observing a run slows it down, so this one is slower than the measured ones. Scroll with Ctrl to zoom, drag to move, double-click to see all."), timeline(report, pieces, go), legend(new Set(pieces.map((p) => p.family)))),
    card("Time by kind of operation", kindsBox), card("Time by operation", rows));
  return { node, show() {} };
};

const timeline = (report, pieces, go) => {
  const profile = report.profile, box = el("div", { class: "chart" }), view = { from: 0, to: 1 }, L = 92, R = 14, LANE = 34, T = 24;
  const end = Math.max(profile.observed_us, ...profile.slices.map((s) => s[2] + s[3]), 1e-3);
  const lanes = Math.max(1, profile.threads.length), samples = profile.memory.filter((s) => s[0] === "host").map((s) => [s[1], s[2]]);
  const tall = samples.length ? 84 : 0;
  const height = T + lanes * LANE + tall + 8;
  let hovered = null;
  const chart = canvasIn(box, height, (c, w) => {
    const x = (us) => L + ((us / end - view.from) / (view.to - view.from)) * (w - L - R);
    for (const v of ticks(view.from * end, view.to * end, Math.max(2, w / 120))) { rule(c, x(v), T - 4, x(v), T + lanes * LANE); text(c, micros(v), x(v), 10, { align: "center" }); }
    profile.threads.forEach((name, at) => { c.font = `11px ${FONT}`; text(c, fitting(c, name, L - 12), L - 8, T + at * LANE + LANE / 2, { align: "right" }); rule(c, L, T + (at + 1) * LANE, w - R, T + (at + 1) * LANE); });
    c.save(); c.beginPath(); c.rect(L, 0, w - L - R, height); c.clip();
    for (const s of profile.slices) {
      const [number, lane, from, long] = s, p = pieces[number], x1 = x(from), x2 = x(from + long), y = T + lane * LANE + 5;
      if (x2 < L || x1 > w - R) continue;
      c.globalAlpha = p.calls ? 0.35 : hovered && hovered !== s ? 0.6 : 1;
      c.fillStyle = familyColour(p.family);
      c.fillRect(x1, p.calls ? y - 3 : y, Math.max(0.7, x2 - x1 - (x2 - x1 > 3 ? 0.8 : 0)), p.calls ? LANE - 4 : LANE - 10);
      if (x2 - x1 > 46 && !p.calls) { c.globalAlpha = 1; c.font = `600 10.5px ${FONT}`; text(c, fitting(c, p.label.replace(/^operation \d+ /, ""), Math.min(x2, w - R) - Math.max(x1, L) - 8), Math.max(x1, L) + 4, y + (LANE - 10) / 2, { colour: isDark() ? "#10151c" : "#fff", size: 10.5, weight: 600 }); }
    }
    c.globalAlpha = 1;
    if (tall) {
      const most = Math.max(...samples.map((s) => s[1]), 1), ground = height - 10, y = (v) => ground - (v / most) * (tall - 22);
      stepArea(c, samples, end, x, y, ground, css("--accent"));
      c.restore();
      text(c, "memory", L - 8, ground - tall / 2 + 4, { align: "right" });
      text(c, bytes(most), L - 8, ground - tall + 22, { align: "right", size: 10 });
    } else c.restore();
  }, "Timeline of one run");
  zoomable(chart.canvas, view, chart.redraw, L, R);
  const under = (e) => {
    const w = chart.canvas.clientWidth, us = ((e.offsetX - L) / (w - L - R) * (view.to - view.from) + view.from) * end, lane = Math.floor((e.offsetY - T) / LANE);
    const near = (2 / (w - L - R)) * (view.to - view.from) * end;
    const hits = profile.slices.filter((s) => s[1] === lane && us >= s[2] - near && us <= s[2] + s[3] + near);
    return hits.sort((a, b) => a[3] - b[3])[0] || null;
  };
  chart.canvas.addEventListener("mousemove", (e) => {
    const s = under(e);
    if (s !== hovered) { hovered = s; chart.redraw(); }
    if (s) { const p = pieces[s[0]]; tip.show(e, [p.label, `${micros(s[3])} on ${p.backend}`, p.flops && `${scaled(p.flops / s[3] * 1e6, "op/s")}`, `${scaled(p.bytes / Math.max(s[3], 1e-9) * 1e6, "B/s")}`]); } else tip.hide();
  });
  chart.canvas.addEventListener("mouseleave", () => { hovered = null; tip.hide(); chart.redraw(); });
  chart.canvas.addEventListener("click", (e) => { const s = under(e); if (s && e.detail === 1 && e.altKey) go(pieces[s[0]]); });
  return box;
};
