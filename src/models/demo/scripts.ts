/** The lines of the demo model, as data for `answer.ts`. In each list the first match counts. */

/** The steps of the example agents, by the first line of their system prompts. `{material}`: the text that the prompt hands over; `{notes}`: what JSON in it says. */
export const roles: readonly [name: string, prompt: RegExp, text: string][] = [
  ['judge', /\b(weigh|decide|verdict)/i, 'On "{topic}" I have heard: {material} I recommend the smallest step.'],
  ['optimist', /\b(go well|optimist|advantage)/i, '"{topic}" can go well: the new helps from the first day.'],
  ['sceptic', /\b(go wrong|s[ck]eptic|risk|against)/i, '"{topic}" can go wrong: it takes longer than planned.'],
  ['accountant', /\b(cost|accountant|budget)/i, '"{topic}" costs time before it saves any.'],
  ['researcher', /\b(this question|research|find out)/i, 'On "{topic}" a real model would answer: {material}'],
  ['writer', /\b(write|draft|improve|notes|tell|say)\b/i, 'This is about "{topic}". {notes}'],
]

/** Questions that call a tool without naming it. */
export const habits: readonly [tool: RegExp, question: RegExp][] = [
  [/^calculator$/, /\d\s*[-+*/^%]\s*[\d(]/],
  [/^getCurrentTime$/, /\bwhat (time|day)\b|\b(the|current|local) (time|date)\b|\btime in\b/i],
  [/location/i, /\bwhere am i\b|\bmy (location|position|place)\b/i],
]

/** Advice on a draft, by its score. */
export const advice = ['Say what only this one can say.', 'Make every word count.', 'End on the strongest word.']

/** Strings of tool arguments and JSON answers, by their name or format. */
export const strings: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  email: 'demo@example.com',
  uri: 'https://example.com/',
}

export const lines = {
  greeting: 'I am the Millrace demo model: I run offline, without a key, and follow simple rules. You said: "{words}"',
  count: 'The Millrace demo model counts: {numbers}.',
  filler: 'These words of the Millrace demo model show how text flows.',
  handOver: ['No tool is asked for.', 'The tools have given what was asked for.'],
}
