"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();

  const steps = document.getElementById("steps");
  if (!steps) return;
  const path = JSON.parse(steps.textContent);
  const slider = document.getElementById("slider");
  const reading = document.getElementById("reading");
  const marker = document.getElementById("path-here");
  const bars = document.querySelectorAll("#path .bar");
  const values = document.querySelectorAll("#path .value");
  const move = () => {
    const step = path.steps[Number(slider.value)];
    const text = `${path.symbol} = ${step.value}: held-out ${path.metric} ${step.score}, ${step.used} kernels used, relative gap ${step.gap}`;
    reading.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    marker.setAttribute("transform", `translate(${step.place - path.start} 0)`);
    step.widths.forEach((width, k) => { bars[k].style.width = `${width}%`; });
    step.weights.forEach((weight, k) => { values[k].textContent = weight; });
  };
  slider.addEventListener("input", move);
  for (const button of document.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => { slider.value = button.dataset.step; move(); });
  }
  move();
})();
