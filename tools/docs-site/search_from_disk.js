// Lets the search work where the site is opened from disk. A page at file:// may neither fetch the index nor start a worker: the index
// comes as a script instead, and the worker's script runs in a hidden frame. At http:// the theme's own way is left as it is.
var __search;

if (location.protocol === 'file:') {
  const base = new URL('.', document.currentScript.src);

  __search = {
    index: new Promise((resolve, reject) => {
      window.__search_index_is = resolve; // called by the script
      const script = document.createElement('script');
      script.src = new URL('search/search_index.js', base);
      script.onerror = reject;
      document.head.append(script);
    }),
  };

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => this.frame.addEventListener('load', resolve));
      this.frame.srcdoc = `<script>postMessage = (data) => frameElement.answer(data)</script><script src="${new URL(url, location)}"></script>`;
      this.frame.answer = (data) => this.dispatchEvent(new MessageEvent('message', { data }));
      document.body.append(this.frame);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent('message', { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
