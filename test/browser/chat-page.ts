/** A chat in the page, as a person uses it, and a model whose answer stops at latches. */
import type { Locator, Page } from 'playwright-core'
import type { Latch, ScriptStep } from '../../src/models/testing/scripted-model.ts'

export const answers = (page: Page): Locator => page.getByTestId('assistant-message')

export async function ask(page: Page, words: string): Promise<void> {
  await page.getByTestId('chat-input').fill(words)
  await page.getByTestId('send-button').click()
}

/** One block of text, with latches in it. */
export function growing(...pieces: (string | Latch)[]): ScriptStep[] {
  const id = 'block'
  return [
    { type: 'text-start', id },
    ...pieces.map((piece) => (typeof piece === 'string' ? ({ type: 'text-delta', id, delta: piece } as const) : piece)),
    { type: 'text-end', id },
  ]
}
