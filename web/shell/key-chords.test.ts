import { describe, expect, test } from 'vitest'
import { chordLabel, chordsOf, createKeyBoard, type KeyPress, type Keys, type PressContext } from './key-chords.ts'

function press(key: string, given: Partial<KeyPress> = {}): KeyPress {
  return { key, code: '', shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...given }
}

const here: PressContext = { inField: false, areOn: true, isMac: false, now: 0 }

function boardWith(...names: string[]) {
  const board = createKeyBoard()
  const pressed: string[] = []
  const keys: Keys = Object.fromEntries(
    names.map((name) => [name, { label: name, run: () => void pressed.push(name) }]),
  )
  board.add('Here', () => keys)
  return {
    board,
    pressed,
    type(event: KeyPress, context: Partial<PressContext> = {}) {
      const found = board.press(event, { ...here, ...context })
      if (found !== undefined && found !== 'begun') found.run()
      return found
    },
  }
}

describe('the names of a press', () => {
  test.each([
    ['j', press('j'), ['j']],
    ['?', press('?', { shiftKey: true, code: 'Slash' }), ['Shift+/', '?']],
    ['Shift+,', press('<', { shiftKey: true, code: 'Comma' }), ['Shift+,', '<']],
    ['Space', press(' '), ['Space']],
    ['Esc', press('Escape'), ['Esc']],
    ['Ctrl K', press('k', { ctrlKey: true }), ['Mod+k']],
    ['Ctrl Shift Z', press('Z', { ctrlKey: true, shiftKey: true }), ['Mod+Shift+z']],
    ['a menu key', press('f', { altKey: true }), []],
    ['⌘ where it is no modifier', press('k', { metaKey: true }), []],
  ])('%s', (_, event, chords) => expect(chordsOf(event, false)).toEqual(chords))

  test('on a Mac, ⌘ is the modifier and Ctrl belongs to the system', () => {
    expect(chordsOf(press('k', { metaKey: true }), true)).toEqual(['Mod+k'])
    expect(chordsOf(press('k', { ctrlKey: true }), true)).toEqual([])
  })
})

test('one key, and two one after the other', () => {
  const { type, pressed } = boardWith('j', 'g r', 'r')
  type(press('j'))
  expect(type(press('g'))).toBe('begun')
  type(press('r'))
  type(press('r'))
  expect(pressed).toEqual(['j', 'g r', 'r'])
})

test('the second key may come too late, or be another', () => {
  const { type, pressed } = boardWith('j', 'g r', 'r')
  type(press('g'))
  type(press('r'), { now: 5000 })
  type(press('g'))
  type(press('j'))
  expect(pressed).toEqual(['r', 'j'])
})

test('a field keeps its keys, except those with a modifier and those that ask for it', () => {
  const { board, type, pressed } = boardWith('j', 'g r', 'Mod+k')
  board.add('Search', () => ({ Esc: { label: 'Close', run: () => void pressed.push('Esc'), inFields: true } }))
  expect(type(press('j'), { inField: true })).toBeUndefined()
  expect(type(press('g'), { inField: true })).toBeUndefined()
  expect(type(press('r'), { inField: true })).toBeUndefined()
  type(press('k', { ctrlKey: true }), { inField: true })
  type(press('Escape'), { inField: true })
  expect(pressed).toEqual(['Mod+k', 'Esc'])
})

test('turned off, only keys with a modifier are left', () => {
  const { type, pressed } = boardWith('j', 'Mod+k')
  type(press('j'), { areOn: false })
  type(press('k', { ctrlKey: true }), { areOn: false })
  expect(pressed).toEqual(['Mod+k'])
})

test('a room comes before the page, and is gone when it is left', () => {
  const { board, type, pressed } = boardWith('j')
  const leave = board.add('Room', () => ({ j: { label: 'j', run: () => void pressed.push('room') } }))
  expect(board.groups().map(({ name }) => name)).toEqual(['Room', 'Here'])
  type(press('j'))
  leave()
  type(press('j'))
  expect(pressed).toEqual(['room', 'j'])
})

test('names of the prototype are no keys', () => {
  expect(boardWith('j').type(press('constructor'))).toBeUndefined()
})

test('labels are those of the machine', () => {
  expect([chordLabel('Mod+k', true), chordLabel('Mod+k', false), chordLabel('g r', false)]).toEqual([
    '⌘K',
    'Ctrl K',
    'g then r',
  ])
  expect(chordLabel('Shift+,', true)).toBe('⇧,')
})
