// Chooses light or dark: as the person chose here, else as the system says.
(() => {
  const root = document.documentElement;
  const kept = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  if (kept()) root.dataset.theme = kept();
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch {
        // The choice holds for this page only.
      }
    });
  });
})();
