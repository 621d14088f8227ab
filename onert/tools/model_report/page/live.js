// The bar of a served page: compile with other options, measure again, and follow changes of the model file.
const liveBar = (onreports) => {
  const box = document.getElementById("live"), said = el("span", { class: "soft", role: "status" });
  const first = state.reports[0].options;
  const backends = el("input", { value: first.backends || "", placeholder: state.reports[0].backends.join(";"), "aria-label": "Backends by preference", size: "18" });
  const executor = el("select", { "aria-label": "Executor" }, ["Linear", "Dataflow", "Parallel"].map((e) => el("option", { selected: e === first.executor }, e)));
  const threads = el("input", { type: "number", min: "1", max: "256", value: first.num_threads, "aria-label": "Threads" });
  const optimize = el("input", { type: "checkbox", checked: first.optimize !== "False" });
  let busy = false, seen = null;
  const ask = async (profile) => {
    if (busy) return;
    busy = true;
    said.textContent = profile ? "Measuring…" : "Compiling…";
    try {
      const options = { executor: executor.value, num_threads: +threads.value, backends: backends.value, optimize: optimize.checked };
      const answer = await fetch(`${state.live}report`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...options, profile }) });
      const told = await answer.json();
      if (told.error) said.textContent = told.error;
      else { seen = told.changed; said.textContent = profile ? "Measured." : "Compiled."; onreports(told.reports); }
    } catch { said.textContent = "The server does not answer; is onert_inspect --serve still running?"; }
    busy = false;
  };
  const watch = async () => {
    try {
      const now = (await (await fetch(`${state.live}changed`)).json()).changed;
      if (seen !== null && now !== seen && !busy) { said.textContent = "The model's file has changed; reading it again."; seen = now; await ask(!!(state.reports[0].profile)); }
      seen = now;
    } catch { said.textContent = "The server does not answer; is onert_inspect --serve still running?"; }
    setTimeout(watch, 2000);
  };
  box.hidden = false;
  box.replaceChildren(el("label", {}, "Backends ", backends), el("label", {}, "Executor ", executor), el("label", {}, "Threads ", threads), el("label", {}, optimize, " optimise"), button("Compile", "Compile with these options", () => ask(false)), button("Measure", "Compile, run and measure", () => ask(true)), said);
  watch();
};
