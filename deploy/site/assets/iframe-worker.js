// Browsers start no workers for pages that are read from a disk. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.onmessage = null
      this.waiting = []
      this.ready = false
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      const script = new URL(address, document.baseURI).href.replaceAll("&", "&amp;").replaceAll('"', "&quot;")
      this.frame.srcdoc =
        "<script>window.postMessage = data => parent.postMessage({ search: data }, '*');" +
        "window.importScripts = () => {}<\/script>" +
        '<script src="' + script + '"><\/script>'
      this.frame.addEventListener("load", () => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow || !event.data || !("search" in event.data)) return
        event.stopImmediatePropagation()
        const heard = new MessageEvent("message", { data: event.data.search })
        if (this.onmessage) this.onmessage(heard)
        this.dispatchEvent(heard)
      })
      document.documentElement.appendChild(this.frame)
    }
    postMessage(data) {
      if (!this.ready) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
