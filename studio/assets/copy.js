// Buttons that copy a text. Where the browser refuses, the text is selected, so that the person's own key copies it.
const shown = 2000;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const label = button.firstChild;
  const usual = label.data;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    label.data = "Copied";
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector("code"));
    label.data = "Selected";
  }
  setTimeout(() => (label.data = usual), shown);
});
