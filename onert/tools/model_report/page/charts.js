// Axes and marks shared by several charts.
const ticks = (low, high, count) => {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(v);
  return found;
};
const byteTicks = (high, count) => {
  let step = 1;
  while (high / step > count) step *= 2;
  const found = [];
  for (let v = 0; v <= high * 1.0001; v += step) found.push(v);
  return found;
};
const text = (c, words, x, y, { align = "left", colour = css("--soft"), size = 11, weight = 400, base = "middle" } = {}) => {
  c.font = `${weight} ${size}px ${FONT}`;
  c.textAlign = align;
  c.textBaseline = base;
  c.fillStyle = colour;
  c.fillText(words, x, y);
};
const rule = (c, x1, y1, x2, y2, colour = css("--line"), dash = []) => {
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.setLineDash(dash);
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x2, y2);
  c.stroke();
  c.setLineDash([]);
};
const fitting = (c, words, width) => {
  if (c.measureText(words).width <= width) return words;
  let low = 0, high = words.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(`${words.slice(0, middle)}…`).width <= width) low = middle; else high = middle - 1;
  }
  return low ? `${words.slice(0, low)}…` : "";
};

// Bytes in use over time, as a step line over a faint area. points: [x, bytes], sorted.
const stepArea = (c, points, end, x, y, ground, colour) => {
  if (!points.length) return;
  c.beginPath();
  c.moveTo(x(points[0][0]), ground);
  points.forEach(([at, value], i) => {
    c.lineTo(x(at), y(value));
    c.lineTo(x(i + 1 < points.length ? points[i + 1][0] : end), y(value));
  });
  c.lineTo(x(end), ground);
  c.globalAlpha = 0.16;
  c.fillStyle = colour;
  c.fill();
  c.globalAlpha = 1;
  c.beginPath();
  points.forEach(([at, value], i) => {
    c[i ? "lineTo" : "moveTo"](x(at), y(value));
    c.lineTo(x(i + 1 < points.length ? points[i + 1][0] : end), y(value));
  });
  c.strokeStyle = colour;
  c.lineWidth = 1.5;
  c.stroke();
};

// Make a chart zoom along x by wheel, pinch or keys, and move by dragging. view: {from, to} within [0, 1].
const zoomable = (canvas, view, redraw, left, right) => {
  const clamp = (from, to) => {
    const span = Math.min(1, Math.max(1e-5, to - from));
    view.from = Math.max(0, Math.min(1 - span, from));
    view.to = view.from + span;
    redraw();
  };
  const zoom = (factor, centre) => {
    const at = view.from + (view.to - view.from) * centre;
    clamp(at - (at - view.from) * factor, at + (view.to - at) * factor);
  };
  canvas.addEventListener("wheel", (e) => {
    if (!(e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) && Math.abs(e.deltaX) <= Math.abs(e.deltaY) && view.from === 0 && view.to === 1 && e.deltaY > 0) return;
    e.preventDefault();
    const width = canvas.clientWidth - left - right;
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const by = (e.deltaX / width) * (view.to - view.from); clamp(view.from + by, view.to + by); }
    else zoom(Math.exp(e.deltaY * 0.0022), Math.max(0, Math.min(1, (e.offsetX - left) / width)));
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, from: view.from, to: view.to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", (e) => {
    if (!drag) return;
    const by = ((drag.x - e.clientX) / (canvas.clientWidth - left - right)) * (drag.to - drag.from);
    clamp(drag.from + by, drag.to + by);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });
  canvas.addEventListener("dblclick", () => clamp(0, 1));
  canvas.addEventListener("keydown", (e) => {
    const span = view.to - view.from;
    const does = { "+": () => zoom(0.7, 0.5), "=": () => zoom(0.7, 0.5), "-": () => zoom(1.43, 0.5), 0: () => clamp(0, 1),
      ArrowLeft: () => clamp(view.from - 0.1 * span, view.to - 0.1 * span), ArrowRight: () => clamp(view.from + 0.1 * span, view.to + 0.1 * span) }[e.key];
    if (does) { e.preventDefault(); e.stopPropagation(); does(); }
  });
};
