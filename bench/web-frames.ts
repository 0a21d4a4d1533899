/** How long frames of the page take. */
import type { Page } from 'playwright-core'

/** From the event to the frame that shows it. */
export async function slowestMove(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const input = document.querySelector<HTMLInputElement>('[data-testid=scrubber]')!
    const room = document.querySelector<HTMLElement>('[data-testid=run-room]')!
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!
    const frame = () => new Promise<number>((done) => requestAnimationFrame(done))
    let slowest = 0
    for (let i = 1; i <= 20; i++) {
      const seq = Math.floor((Number(input.max) * i) / 21)
      const began = performance.now()
      set.call(input, String(seq))
      input.dispatchEvent(new Event('input', { bubbles: true }))
      while (room.dataset['seq'] !== String(seq)) await frame()
      await frame()
      slowest = Math.max(slowest, performance.now() - began)
    }
    return slowest
  })
}

/** Scrolls a pane from its start to its end and back, and returns the longest time between two frames. */
export async function longestFrame(page: Page, selector: string, seconds: number): Promise<number> {
  return page.evaluate(
    async ([query, length]) => {
      const pane = document.querySelector<HTMLElement>(query)!
      const frame = () => new Promise<number>((done) => requestAnimationFrame(done))
      const began = await frame()
      let before = began
      let longest = 0
      for (;;) {
        const now = await frame()
        longest = Math.max(longest, now - before)
        before = now
        const part = (now - began) / (length * 1000)
        if (part >= 1) return longest
        pane.scrollTop = (pane.scrollHeight - pane.clientHeight) * (1 - Math.abs(1 - 2 * part))
      }
    },
    [selector, seconds] as const,
  )
}

/** The longest time between two frames. */
export async function watched(page: Page, seconds: number): Promise<number> {
  return page.evaluate(async (length) => {
    const frame = () => new Promise<number>((done) => requestAnimationFrame(done))
    const began = await frame()
    let before = began
    let longest = 0
    while (before - began < length * 1000) {
      const now = await frame()
      longest = Math.max(longest, now - before)
      before = now
    }
    return longest
  }, seconds)
}
