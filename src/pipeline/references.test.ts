/** References that can have no value, by what is known before a run; and those that may have one, which are no faults. */
import { describe, expect, test } from 'vitest'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Known } from './pipeline.ts'

const known: Known = {
  stepTypes: ['custom'],
  tools: [],
  callbacks: [],
  providers: ['demo'],
  mcpServers: ['files'],
  env: ['REGION'],
  hasDefaultModel: true,
}

function faultsOf(text: string, names: Known | undefined = known): string[] {
  try {
    parsePipeline(text, names)
  } catch (error) {
    if (error instanceof PipelineError)
      return error.faults.map(({ line, column, message }) => `${line}:${column} ${message}`)
    throw error
  }
  return []
}

const input = `input:
  topic: string
  tone?: string
  author: { type: object, properties: { name: string } }
  open: { type: object, properties: { a: string }, additionalProperties: true }
  list: { type: array, items: { type: object, properties: { title: string } } }
  any: any
`
/** A file that uses a reference on line 10 or so, after steps of every kind. */
const say = (id: string, words: string) => `{ id: ${id}, type: output-generator, config: { template: ${words} } }`
const using = (reference: string, steps: readonly string[] = []) =>
  ['workflow:', ...[...steps, say('use', `"${reference}"`)].map((step) => `  - ${step}`)].join('\n')

const steps = [
  '{ id: s1, type: llm, result: answer }',
  '{ id: s2, type: llm, config: { output: { schema: { title: string, tags: { type: array, items: string } } } }, result: made }',
  '{ id: s3, type: router, result: route }',
  '{ id: s4, type: memory, config: { action: recall }, result: recalled }',
  '{ id: s5, type: memory, config: { action: store }, result: kept }',
  '{ id: s6, type: output-generator, config: { template: { words: $answer.text, n: 3, made: $made.object } }, result: note }',
  '{ id: s7, type: output-generator, config: { json: $answer.text }, result: read }',
  '{ id: s8, type: custom, config: {}, result: own }',
  '{ id: s9, type: call-agent, config: { agent: other }, result: called }',
  '{ id: s10, type: mcp-tool, config: { server: files, tool: read }, result: tool }',
  `{ id: s11, type: condition, config: { if: $input.x? == 1, then: [{ id: t, type: llm }], else: [${say('e', '{ other: 1 }')}] }, result: chosen }`,
  '{ id: s12, type: loop, config: { over: $made.object.tags, steps: [{ id: l, type: llm }] }, result: rounds }',
  '{ id: s13, type: parallel, config: { branches: { for: [{ id: f, type: llm }], against: [{ id: g, type: custom }] } }, result: views }',
  '{ id: s14, type: parallel, config: { onError: continue, branches: { a: [{ id: h, type: llm }] } }, result: tries }',
]

describe('lead nowhere', () => {
  test.each<[reference: string, fault: string]>([
    ['$answer.txt', '$answer has no "txt" (did you mean "text"?); known fields: text, reasoning, finishReason,'],
    ['Say $answer.txt now', '$answer has no "txt"'],
    ['$stepResult.answer.txt', '$stepResult.answer has no "txt" (did you mean "text"?)'],
    ['$answer.usage.tokens', '$answer.usage has no "tokens"; known fields: inputTokens,'],
    ['$answer.text.words', '$answer.text is a string, which has no fields'],
    ['$answer.steps.first', '$answer.steps is a list; use an index, such as $answer.steps.0'],
    ['$answer.steps.0.txt', '$answer.steps.0 has no "txt" (did you mean "text"?)'],
    ['$answer.object', '$answer has no "object"'],
    ['$made.object.titel', '$made.object has no "titel" (did you mean "title"?); known fields: title, tags'],
    ['$made.object.tags.0.x', '$made.object.tags.0 is a string, which has no fields'],
    ['$route.respons', '$route has no "respons" (did you mean "respond"?)'],
    ['$route.respond.why', '$route.respond has no "why"; known fields: reason, notes'],
    ['$recalled.turns.0.usr', '$recalled.turns.0 has no "usr" (did you mean "user"?)'],
    ['$kept.facts', '$kept has no "facts"; known fields: stored'],
    ['$note.word', '$note has no "word" (did you mean "words"?); known fields: words, n, made'],
    ['$note.n.x', '$note.n is a number, which has no fields'],
    ['$note.made.titel', '$note.made has no "titel" (did you mean "title"?)'],
    ['$chosen.txt', '$chosen has no "txt" (did you mean "text"?)'],
    ['$rounds.text', '$rounds is a list; use an index, such as $rounds.0'],
    ['$rounds.0.txt', '$rounds.0 has no "txt"'],
    ['$views.agaist', '$views has no "agaist" (did you mean "against"?); known fields: for, against'],
    ['$views.for.txt', '$views.for has no "txt"'],
    ['$answer.constructor', '$answer has no "constructor"; known fields: '],
  ])('%s', (reference, fault) => {
    const text = using(reference, steps)
    expect(faultsOf(text)).toEqual([expect.stringContaining(fault)])
    expect(faultsOf(text)[0]).toMatch(/^16:\d+ /u)
  })

  test.each<[reference: string, fault: string]>([
    [
      '$input.topc',
      '"input" does not declare "topc" (did you mean "topic"?); declared keys: topic, tone, author, open, list, any; declare it, or write $input.topc? if it may be missing',
    ],
    ['$input.author.nme', '$input.author has no "nme" (did you mean "name"?); known fields: name'],
    ['$input.list.0.titel', '$input.list.0 has no "titel"'],
    ['$input.topic.x', '$input.topic is a string, which has no fields'],
  ])('%s', (reference, fault) => {
    expect(faultsOf(`${input}${using(reference)}`)).toEqual([expect.stringContaining(fault)])
  })

  test('a variable that the config does not allow; its key is named', () => {
    expect(faultsOf(using('$env.HOME'))).toEqual([
      '2:60 $env.HOME is not allowed; allowed variables: REGION; add "HOME" to "env" in millrace.config.ts',
    ])
    expect(faultsOf(using('$env.HOME'), { ...known, env: [] })[0]).toContain('allowed variables: none')
    expect(faultsOf(using('$env.REGIN'))[0]).toContain('(did you mean "REGION"?)')
  })

  test.each<[reference: string, fault: string | undefined]>([
    ['$user.id', undefined],
    ['$user.roles.0', undefined],
    ['$user.claims.plan', undefined],
    ['$user', undefined],
    [
      '$user.nmae',
      '2:60 $user.nmae has no value: $user has no "nmae" (did you mean "name"?); known fields: id, tenant, name, roles, claims',
    ],
    ['$user.nmae?', '(did you mean "name"?)'],
    ['$user.id.x', '$user.id is a string, which has no fields'],
    ['$user.key', '$user has no "key"'],
    [
      '$user.claims.pln',
      '2:60 $user.claims.pln is not listed (did you mean "plan"?); listed claims: plan; add "pln" to the claims that millrace.config.ts lists',
    ],
    ['$user.claims.plan.x', '$user.claims.plan is a string or a number or a boolean, which has no fields'],
  ])('%s', (reference, fault) => {
    const expected = fault === undefined ? [] : [expect.stringContaining(fault)]
    expect(faultsOf(using(reference), { ...known, claims: ['plan'] })).toEqual(expected)
  })

  test('without a list of claims any may exist', () => {
    expect(faultsOf(using('$user.claims.anything'))).toEqual([])
  })

  test('a result called user is refused in a file, not in a recorded run', () => {
    const text = using('$user.text', ['{ id: first, type: llm, result: user }'])
    expect(faultsOf(text)).toContainEqual(
      expect.stringContaining('"result" is a reserved name (input, env, user, stepResult); choose another'),
    )
    expect(parsePipeline(text).workflow).toHaveLength(2)
  })

  test('items of a loop, in conditions, inputs of calls, return and after', () => {
    const loop = (words: string) =>
      using('x', [
        `{ id: s, type: llm, result: a }`,
        `{ id: l, type: loop, config: { over: $a.steps, steps: [${say('i', words)}] } }`,
      ])
    expect(faultsOf(loop('$item.txt'))).toEqual([expect.stringContaining('$item has no "txt" (did you mean "text"?)')])
    expect(faultsOf(loop('$index.x'))).toEqual([expect.stringContaining('$index is a number')])
    expect(faultsOf(loop('$item.text'))).toEqual([])
    const first = '{ id: s, type: llm, result: a }'
    const condition = `{ id: c, type: condition, config: { if: $a.txt == "x", then: [${say('d', '1')}] } }`
    expect(faultsOf(using('x', [first, condition]))).toEqual([expect.stringMatching(/^3:45 \$a\.txt has no value/u)])
    const call = '{ id: c, type: call-agent, config: { agent: other, input: { x: $a.txt } } }'
    expect(faultsOf(using('x', [first, call]))).toHaveLength(1)
    expect(faultsOf(`${using('x', [first])}\nreturn: { x: $a.txt }\nafter: [${say('z', '$a.txt')}]`)).toHaveLength(2)
  })
})

describe('may lead somewhere', () => {
  test.each([
    '$answer.txt?',
    'Is it $answer.txt?',
    '$answer.usage.reasoningTokens',
    '$answer.steps.0.toolCalls.1.input.anything.at.all',
    '$answer.toolResults.length',
    '$answer.response.messages.0.content',
    '$made.object.tags.0',
    '$made.object',
    '$route.respond.notes',
    '$route.messages.0.role',
    '$recalled.turns.0.assistant',
    '$kept.stored.0',
    '$note.made.title',
    '$read.any.thing',
    '$own.any.thing',
    '$called.any.thing',
    '$tool.any.thing',
    '$chosen.text',
    '$chosen.other',
    '$rounds.0.text',
    '$views.for.text',
    '$views.against.anything',
    '$tries.a.text',
    '$tries.a.error.message',
    '$env.REGION',
    '$env.OTHER?',
    '$input.any.thing',
  ])('%s', (reference) => expect(faultsOf(using(reference, steps))).toEqual([]))

  test.each([
    '$input.topic',
    '$input.tone',
    '$input.tone?',
    '$input.topc?',
    '$input.author.name',
    '$input.open.b.c',
    '$input.list.0.title',
    '$input.any.thing',
    '$input.messages.0.content',
    '$input.tools.0.name',
    // Parameters of OpenAI's protocol come with a request whatever an agent declares.
    '$input.temperature',
    '$input.user',
  ])('with a declared input: %s', (reference) => expect(faultsOf(`${input}${using(reference)}`)).toEqual([]))

  test('an input that allows further keys', () => {
    const free = (more: string) =>
      `input: { type: object, properties: { topic: string }, ${more} }\n${using('$input.other')}`
    expect(faultsOf(free('additionalProperties: true'))).toEqual([])
    expect(faultsOf(free('additionalProperties: string'))).toEqual([])
    expect(faultsOf(free('additionalProperties: false'))).toHaveLength(1)
  })

  test('a list that a streaming step may end', () => {
    const then = `[{ id: a, type: llm, config: { stream: true } }, ${say('b', '{ x: 1 }')}]`
    const condition = `{ id: c, type: condition, config: { if: $input.x? == 1, then: ${then} }, result: r }`
    expect(faultsOf(using('$r.text', [condition]))).toEqual([])
  })

  test('a recorded run, which is parsed with no names', () => {
    const text = `${input}${using('$input.topc $env.HOME $answer.txt', steps)}`
    expect(() => parsePipeline(text)).not.toThrow()
    expect(faultsOf(text).length).toBeGreaterThan(2)
  })
})

describe('a step without a model', () => {
  const files = ['{ id: a, type: llm }', '{ id: a, type: llm, config: { system: x } }', '{ id: a, type: router }']

  test.each(files)('%s: where there is no default it is a fault that says both cures', (step) => {
    const text = `workflow:\n  - ${step}`
    expect(faultsOf(text)).toEqual([])
    expect(faultsOf(text, { ...known, hasDefaultModel: false })).toEqual([
      expect.stringMatching(
        /^2:\d+ no model; add "model: provider:name" to this config, or set models\.default in millrace\.config\.ts$/u,
      ),
    ])
  })

  test('one that names its own needs none', () => {
    const text =
      'workflow: [{ id: a, type: llm, config: { model: "demo:m" } }, { id: b, type: memory, config: { action: recall } }]'
    expect(faultsOf(text, { ...known, hasDefaultModel: false })).toEqual([])
  })
})

test('alternatives within alternatives cost no more than there are', () => {
  const branch = (i: number, at: string) =>
    `{ id: ${at}${i}, type: output-generator, config: { template: { x: $c${i - 1} } } }`
  const nested = Array.from(
    { length: 60 },
    (_, i) =>
      `{ id: s${i + 1}, type: condition, config: { if: $input.x? == 1, then: [${branch(i + 1, 't')}], else: [${branch(i + 1, 'e')}] }, result: c${i + 1} }`,
  )
  const text = using(`$c60${'.x'.repeat(60)}.y`, ['{ id: s0, type: llm, result: c0 }', ...nested])
  expect(faultsOf(text)).toEqual([expect.stringContaining('has no "y"')])
})
