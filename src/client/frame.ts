/** Calls a function once for all that happens within one frame of the page. */
export function oncePerFrame(call: () => void): () => void {
  let isAsked = false
  function run(): void {
    isAsked = false
    call()
  }
  return () => {
    if (isAsked) return
    isAsked = true
    // A page in the background has no frames, and a server none at all.
    const page = globalThis.document
    if (page !== undefined && !page.hidden && typeof requestAnimationFrame === 'function') requestAnimationFrame(run)
    else setTimeout(run, 16)
  }
}
