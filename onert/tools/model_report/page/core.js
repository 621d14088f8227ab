// Shared by all parts: creating elements, formatting numbers, colours, and shared state.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) if (child != null && child !== false) node.append(child);
  return node; // strings become text nodes, so text from a model is never markup
};

const scaled = (number, unit, step = 1000) => {
  const prefixes = step === 1024 ? ["", "Ki", "Mi", "Gi", "Ti", "Pi"] : ["", "k", "M", "G", "T", "P"];
  let at = 0;
  while (Math.abs(number) >= step - 0.5 && at < prefixes.length - 1) { number /= step; at++; }
  const digits = at === 0 ? (number % 1 && Math.abs(number) < 100 ? 2 : 0) : Math.abs(number) >= 99.95 ? 0 : Math.abs(number) >= 9.995 ? 1 : 2;
  return `${number.toFixed(digits)} ${prefixes[at]}${unit}`.trim();
};
const bytes = (n) => (n == null ? "?" : scaled(n, "B", 1024));
const micros = (us) => (us >= 1e6 ? `${(us / 1e6).toPrecision(3)} s` : us >= 1e3 ? `${+(us / 1e3).toPrecision(3)} ms` : `${+us.toPrecision(3)} µs`);
const percent = (x) => (x >= 0.0995 ? `${(100 * x).toFixed(0)}%` : `${(100 * x).toFixed(1)}%`);
const shown = (x) => (Number.isInteger(x) ? String(x) : String(+x.toPrecision(4)));
const shape = (dims) => (dims == null ? "[*]" : `[${dims.map((d) => (d == null ? "?" : d)).join(", ")}]`);
const plural = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Okabe and Ito's colours, distinguishable with any colour vision, with more contrast on a light background.
const FAMILIES = {
  contraction: ["Contractions", "#0072b2", "#56a8dc"],
  elementwise: ["Element-wise", "#d98e00", "#e8ab34"],
  reduction: ["Reductions, pooling", "#009e73", "#2fc49a"],
  data_movement: ["Data movement", "#7b8794", "#98a4b3"],
  recurrent: ["Recurrent", "#c25a94", "#e08fbf"],
  control_flow: ["Control flow", "#d55e00", "#f0894a"],
  lookup: ["Lookup", "#5f6fc4", "#8f9cec"],
  vision_audio: ["Vision, audio", "#3f9fd0", "#7cc8ee"],
  stablehlo: ["StableHLO", "#8a7300", "#d9c63f"],
  other: ["Other", "#5d5d5d", "#b0b0b0"],
};
const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const familyName = (family) => (FAMILIES[family] || FAMILIES.other)[0];
const familyColour = (family) => (FAMILIES[family] || FAMILIES.other)[isDark() ? 2 : 1];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
// The colour for a share from 0 to 1, from faint to strong, mainly by lightness.
const heat = (share) => {
  const dark = isDark(), x = Math.max(0, Math.min(1, share));
  return dark ? `hsl(${38 - 18 * x} ${30 + 60 * x}% ${24 + 42 * x}%)` : `hsl(${42 - 22 * x} ${40 + 50 * x}% ${90 - 48 * x}%)`;
};

// Shared state, and listeners for its changes.
const state = { reports: [], side: 0, beside: false, tab: "overview", live: "" };
const listeners = [];
const listen = (on) => { listeners.push(on); return () => listeners.splice(listeners.indexOf(on), 1); };
const tell = (what, detail) => { for (const on of [...listeners]) on(what, detail); };

const tip = {
  show(event, lines) {
    const box = document.getElementById("tip");
    box.replaceChildren(...lines.filter(Boolean).map((line, at) => el("div", { class: at ? "" : "strong" }, line)));
    box.hidden = false;
    const { innerWidth: w, innerHeight: h } = window, r = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, w - r.width - 8))}px`;
    box.style.top = `${Math.max(4, event.clientY + 18 + r.height > h ? event.clientY - r.height - 10 : event.clientY + 18)}px`;
  },
  hide() { document.getElementById("tip").hidden = true; },
};

// A canvas as wide as its box, at the screen's resolution, redrawn when its size or the theme changes.
const canvasIn = (box, height, draw, label) => {
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
  box.append(canvas);
  let waiting = false;
  const paint = () => {
    waiting = false;
    const width = box.clientWidth, tall = typeof height === "function" ? height() : height || box.clientHeight;
    if (!width || !tall) return;
    const dpr = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(tall * dpr)) {
      canvas.width = Math.round(width * dpr);
      canvas.height = Math.round(tall * dpr);
      canvas.style.height = `${tall}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.clearRect(0, 0, width, tall);
    draw(context, width, tall);
  };
  const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };
  new ResizeObserver(redraw).observe(box);
  const stop = listen((what) => { if (!canvas.isConnected && what === "closed") stop(); else if (what === "theme") redraw(); });
  redraw();
  return { canvas, redraw };
};

const debounced = (call, wait = 120) => {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => call(...given), wait); };
};

// The report: base64 of gzip of JSON.
const unpacked = async (text) => {
  const raw = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};
