// Sets the theme before the first paint; a module would come too late. Settings changes it.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem('argiope.theme');
  } catch {
    // Storage is switched off: the system's theme it is.
  }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
