/** Calls a function once for all that happens within one frame of the page, or at once. */
export interface OncePerFrame {
  (): void
  now(): void
}

export function oncePerFrame(call: () => void): OncePerFrame {
  let isAsked = false
  function run(): void {
    if (!isAsked) return
    isAsked = false
    call()
  }
  function ask(): void {
    if (isAsked) return
    isAsked = true
    // A page in the background has no frames, and a server none at all.
    const page = globalThis.document
    if (page !== undefined && !page.hidden && typeof requestAnimationFrame === 'function') requestAnimationFrame(run)
    else setTimeout(run, 16)
  }
  function now(): void {
    isAsked = false
    call()
  }
  return Object.assign(ask, { now })
}
