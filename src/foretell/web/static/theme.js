// In files, before the first paint: the theme that was chosen here last time. A server is told by a cookie.
try {
  const chosen = localStorage.getItem('foretell-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch { /* Storage may be forbidden; the system's theme stands then. */ }
