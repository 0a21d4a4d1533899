import { expect, test } from 'vitest'
import { textAt } from './json-places.ts'
import { createShortcut } from './shortcut.ts'

const data = (text: string) => JSON.stringify({ a: 1, text })
const event = (text: string) => `data: ${data(text)}\n\n`

function learned() {
  const texts: string[] = []
  const shortcut = createShortcut()
  shortcut.learn(event('x'), data('x'), { choose: textAt('text'), apply: (text) => void texts.push(text) })
  return { shortcut, texts }
}

test('the events that follow one are read like it, up to one that differs in more than its text', () => {
  const { shortcut, texts } = learned()
  const like = event('y') + event('z')
  expect(shortcut.read(`${like}data: {}\n\n`, 0)).toBe(like.length)
  expect(texts).toEqual(['y', 'z'])
})

test('after another event nothing is read like the one before it, whether any was or not', () => {
  const { shortcut, texts } = learned()
  shortcut.forget()
  expect(shortcut.read(event('y'), 0)).toBe(0)
  const other = learned()
  other.shortcut.read(event('y'), 0)
  other.shortcut.forget()
  expect(other.shortcut.read(event('z'), 0)).toBe(0)
  expect([texts, other.texts]).toEqual([[], ['y']])
})
