// Browsers start no workers for pages that lie on a disk, and the search is one. There it runs in a frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.onload = () => this.start(String(address));
      document.documentElement.append(this.frame);
    }

    start(address) {
      if (this.scope) return;
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => this.tell(this, data);
      this.scope.importScripts = (...sources) => sources.reduce((before, source) => before.then(() => this.load(source)), Promise.resolve());
      this.load(address).then(() => {
        for (const data of this.waiting) this.tell(this.scope, data);
        this.waiting = null;
      });
    }

    load(address) {
      return new Promise((done, failed) => {
        const script = this.scope.document.createElement("script");
        script.src = address;
        script.onload = done;
        script.onerror = failed;
        this.scope.document.head.append(script);
      });
    }

    tell(target, data) {
      const Kind = target === this ? MessageEvent : this.scope.MessageEvent;
      setTimeout(() => target.dispatchEvent(new Kind("message", { data })));
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(this.scope, data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
