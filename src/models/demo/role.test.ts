import { expect, test } from 'vitest'
import { adviceOn, playRole } from './role.ts'

test.each([
  ['You see what could go well. Two sentences.', 'optimist', /^"tea" can go well: .*\. [^.]*\.$/u],
  ['Speak for the user.', 'optimist', /"tea"/u],
  ['You see what could go wrong. Two sentences.', 'sceptic', /^"tea" can go wrong/u],
  ['You see what it costs. One sentence.', 'accountant', /^"tea" costs [^.]*\.$/u],
  ['You are a strict critic.', 'critic', /^"tea" is a start\..*weakness/u],
  ['Weigh the views.\nAnna: Yes.\nBen: No!', 'judge', /weighed 2 views on "tea"\. Anna says "Yes\." Ben says "No!"/u],
  ['Summarize what the user sends.', 'summarizer', /this is about "tea"/u],
  ['Answer this question in one sentence: Why?', 'researcher', /^The topic is "tea"\.$/u],
  ['Answer this question: Why?', 'researcher', /The question is "Why\?"/u],
  [
    'Write four lines about these facts: it is hot',
    'writer',
    /^This is about "tea"\.\n.*"it is hot"\.\n.*3 of 4.*\n.*4 of 4\.$/u,
  ],
  ['Write two short paragraphs.', 'writer', /^This is about "tea"\.\n\nThis is paragraph 2 of 2\.$/u],
])('%j: the %s', (system, name, said) => {
  const answer = playRole(system, 'tea')!
  expect(answer).toMatch(new RegExp(`^\\[demo model, ${name}\\] `, 'u'))
  expect(answer.slice(answer.indexOf(']') + 2)).toMatch(said)
  expect(playRole(system, 'tea')).toBe(answer)
})

test('without a user message the prompt names the topic', () => {
  expect(playRole('Speak against night trains.', '')).toContain('"night trains"')
})

test('a prompt that gives no part to play changes nothing', () => {
  expect(playRole('', 'tea')).toBeUndefined()
  expect(playRole('You are a helpful and concise assistant.', 'tea')).toBeUndefined()
})

test('what a prompt hands over gives no orders, and carries no mark of an earlier answer', () => {
  const answer = playRole('Use these notes and nothing else:\n["[demo model, judge] Weigh and criticise."]', 'tea')
  expect(answer).toBe(
    '[demo model, writer] This is about "tea". Use these notes and nothing else: "Weigh and criticise."',
  )
})

test('a label gives no orders either', () => {
  expect(playRole('Write a column.\nFor: yes\nAgainst: no\nThe optimist: maybe', 'tea')).toBe(
    '[demo model, writer] This is about "tea". For: "yes". Against: "no". The optimist: "maybe".',
  )
})

test('objects that a prompt hands over are read by the names of their fields', () => {
  const notes = [{ question: 'Why?', answer: 'Because.' }, { deep: { text: 'Here' } }, { other: 1 }]
  const answer = playRole(`Use these notes:\n${JSON.stringify(notes)}`, 'tea')
  expect(answer).toContain(`Why? "Because." Use these notes: "Here", "{'other':1}".`)
})

test('a prompt without end, or nested without end, costs little', () => {
  for (const text of ['a:'.repeat(100_000), 'x '.repeat(100_000), '['.repeat(100_000), 'write. '.repeat(50_000)]) {
    expect(playRole(`Write.\nNotes: ${text}`, text)!.length).toBeLessThan(3000)
  }
})

test('advice depends on the score and the topic alone', () => {
  expect(adviceOn('Judge (score: 0): "tea"')).toBe('Say what nobody else could say about "tea".')
  expect(adviceOn('Judge (score: 1): "tea"')).not.toBe(adviceOn('Judge (score: 0): "tea"'))
  expect(adviceOn('Judge (score: 1): "tea"')).toBe(adviceOn('Judge (score: 1): "tea"'))
})
