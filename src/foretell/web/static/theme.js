// Used in files, before the first paint: applies the theme that was chosen last. Servers get it in a cookie.
try {
  const chosen = localStorage.getItem('foretell-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch { /* Storage may be blocked; then the system's theme is used. */ }
