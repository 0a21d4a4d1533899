import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { formatFaults, parsePipeline, PipelineError } from './parse.ts'
import type { Fault, Known } from './pipeline.ts'

const known: Known = {
  stepTypes: ['shout'],
  tools: ['calculator', 'getCurrentTime'],
  callbacks: ['persistConversation', 'logError'],
  providers: ['demo', 'google', 'openai', 'anthropic', 'ollama'],
}
const beddel = readFileSync(new URL('../../examples/beddel/agents/chat.yaml', import.meta.url), 'utf8')
const assistant = readFileSync(new URL('../../agents/assistant.yaml', import.meta.url), 'utf8')

function faultsOf(text: string, names: Known | undefined = known): Fault[] {
  try {
    parsePipeline(text, names)
  } catch (error) {
    if (error instanceof PipelineError) return error.faults
    throw error
  }
  return []
}

/** An agent with one llm step whose config is these lines; the first of them is line 5 and begins in column 7. */
function llm(...lines: string[]): string {
  return ['workflow:', '  - id: a', '    type: llm', '    config:', ...lines.map((line) => `      ${line}`)].join('\n')
}

function configOf(...lines: string[]) {
  const [step] = parsePipeline(llm(...lines), known).workflow
  if (step?.type !== 'llm') throw new Error('no llm step')
  return step.config
}

describe('the files that ship', () => {
  test("the Beddel document's own YAML", () => {
    const pipeline = parsePipeline(beddel, known)
    expect(pipeline.metadata).toEqual({ name: 'Streaming Assistant', version: '1.0.0' })
    expect(pipeline.workflow).toEqual([
      {
        id: 'chat-interaction',
        type: 'llm',
        line: 8,
        result: 'llmOutput',
        config: {
          model: 'gemini-2.0-flash-exp',
          stream: true,
          system: 'You are a helpful and concise assistant.',
          messages: '$input.messages',
          tools: [{ name: 'calculator', description: 'Execute math' }],
          maxSteps: 5,
          retries: 2,
          onFinish: 'persistConversation',
          onError: 'logError',
        },
      },
      {
        id: 'format-log',
        type: 'output-generator',
        line: 25,
        config: { template: { status: 'completed', tokens: '$llmOutput.usage' } },
      },
    ])
    expect(pipeline.text).toBe(beddel)
    expect(pipeline.recover).toBe(false)
  })

  test('a missing callback is a fault that names the known ones', () => {
    const faults = faultsOf(beddel, { ...known, callbacks: ['logErrors'] })
    expect(faults.map(({ line, column }) => [line, column])).toEqual([
      [20, 17],
      [21, 16],
    ])
    expect(faults[0]?.message).toContain('unknown callback "persistConversation"; known callbacks: logErrors')
    expect(faults[1]?.message).toContain('did you mean "logErrors"')
  })

  test('the assistant needs nothing but the demo provider and the shipped tools', () => {
    const pipeline = parsePipeline(assistant, { ...known, callbacks: [], stepTypes: [], providers: ['demo'] })
    expect(pipeline.workflow[0]?.type === 'llm' && pipeline.workflow[0].config.tools.map(({ name }) => name)).toEqual([
      'calculator',
      'getCurrentTime',
    ])
  })

  // Every key in turn loses a letter, gains one, and has two swapped. Keys of a template are the author's own.
  for (const [file, text] of Object.entries({ assistant, beddel })) {
    const lines = text.split('\n')
    const keys = lines.flatMap((line, i) => {
      const match = /^([\s-]*)([A-Za-z]+):(?:\s|$)/.exec(line)
      return match && !['status', 'tokens'].includes(match[2]!) ? [{ i, before: match[1]!, key: match[2]! }] : []
    })
    test(`${file}: keys were found`, () => expect(keys.length).toBeGreaterThan(14))
    for (const { i, before, key } of keys) {
      test(`${file}:${i + 1} a misspelt "${key}" is a fault on that line`, () => {
        const swapped = key[1]! + key[0]! + key.slice(2)
        for (const wrong of [key.slice(0, -1), `${key}x`, swapped, key.toUpperCase()]) {
          const mutant = lines.with(i, lines[i]!.replace(before + key, before + wrong)).join('\n')
          const faults = faultsOf(mutant)
          expect(faults).toContainEqual({
            line: i + 1,
            column: before.length + 1,
            message: expect.stringContaining(`unknown key "${wrong}"`),
          })
          expect(faults.some(({ message }) => message.includes(`missing key "${key}"`))).toBe(false)
        }
      })
    }
  }
})

describe('faults', () => {
  const start = 'workflow:\n  - {id: a, type: llm}\n'
  const table: Record<string, [text: string, ...faults: [place: string, fragment: string][]]> = {
    'an empty file': ['', ['1:1', 'the file is empty; an agent needs at least "workflow:"']],
    'only a comment': ['# agent\n', ['1:1', 'the file is empty']],
    'only text': ['hello', ['1:1', 'must be a map with the keys metadata, workflow']],
    'a list': ['- a', ['1:1', 'must be a map']],
    'no workflow': ['metadata:\n  name: x', ['1:1', 'missing key "workflow"']],
    'an empty workflow': ['workflow: []', ['1:11', '"workflow" has no steps']],
    'a workflow of nothing': [
      'metadata: {}\nworkflow:',
      ['2:1', '"workflow" must be a list (lines that begin with "- "'],
    ],
    'a workflow of text': ['workflow: chat', ['1:11', 'must be a list']],
    'a step of text': ['workflow:\n  - llm', ['2:5', 'a step must be a map with the keys id, type']],
    'an empty step': [`${start}  -`, ['3:3', 'a step must be a map']],
    'missing id and type': ['workflow:\n  - config: {}', ['2:5', 'missing key "id"'], ['2:5', 'missing key "type"']],
    'an unknown key': [`${start}retrun: 1`, ['3:1', 'unknown key "retrun" (did you mean "return"?)']],
    'an unknown key with no likeness': [`${start}zebra: 1`, ['3:1', 'unknown key "zebra"; known keys: metadata,']],
    'a key of another place': [llm('onBusy: queue'), ['5:7', 'unknown key "onBusy"; known keys: model, system']],
    'a duplicate key': [llm('stream: true', 'stream: false'), ['6:7', 'duplicate key "stream"']],
    'a duplicate id': [`${start}  - {id: a, type: llm}`, ['3:10', 'duplicate id "a" (first on line 2)']],
    'an id of after that workflow has': [`${start}after: [{id: a, type: llm}]`, ['3:14', 'duplicate id "a"']],
    'a duplicate result': [
      'workflow:\n  - {id: a, type: llm, result: r}\n  - {id: b, type: llm, result: r}',
      ['3:32', 'duplicate result "r" (first on line 2)'],
    ],
    'an id with a slash': ['workflow: [{id: a/b, type: llm}]', ['1:17', '"id" must contain only letters, digits']],
    'an id of dots': ['workflow: [{id: .., type: llm}]', ['1:17', '"id" must contain only letters']],
    'an empty id': ['workflow:\n  - id:\n    type: llm', ['2:5', '"id" is empty']],
    'a result that cannot be referred to': ['workflow: [{id: a, type: llm, result: a b}]', ['1:39', 'must be a name']],
    'an unknown step type': [
      'workflow: [{id: a, type: lllm}]',
      ['1:26', 'unknown step type "lllm" (did you mean "llm"?)'],
    ],
    'a CLI agent without a name': ['workflow: [{id: a, type: cli-agent}]', ['1:12', 'missing key "cli"; add it']],
    'an unknown tool': [
      llm('tools: [calculater]'),
      ['5:15', 'unknown tool "calculater" (did you mean "calculator"?); known tools: calculator, getCurrentTime'],
    ],
    'an unknown tool in a map': [llm('tools:', '  - name: foo'), ['6:17', 'unknown tool "foo"; known tools']],
    'the same tool twice': [llm('tools: [calculator, calculator]'), ['5:27', 'duplicate tool "calculator"']],
    'a tool choice that the step lacks': [
      llm('tools: [calculator]', 'toolChoice: {tool: getCurrentTime}'),
      ['6:26', 'not a tool of this step; its tools: calculator'],
    ],
    'an unknown callback': [
      llm('onFinish: logErorr'),
      ['5:17', 'unknown callback "logErorr" (did you mean "logError"?)'],
    ],
    'an unknown provider': [
      llm('model: opnai:gpt-5'),
      ['5:14', 'unknown model provider "opnai" (did you mean "openai"?); known providers: demo, google'],
    ],
    'a bare unknown model': [
      llm('model: llama3'),
      ['5:14', 'unknown model "llama3"; write "provider:model"; known providers'],
    ],
    'a provider alone': [llm('model: demo'), ['5:14', 'write "demo:<model>"']],
    'a provider without a model': [llm('model: "demo:"'), ['5:14', '"demo:" has no model name']],
    'stream: maybe': [llm('stream: maybe'), ['5:15', '"stream" must be true or false, not "maybe"']],
    'stream: nothing': [llm('stream:'), ['5:7', '"stream" must be true or false, but is empty']],
    'maxSteps: 0': [llm('maxSteps: 0'), ['5:17', '"maxSteps" must be a whole number from 1']],
    'maxSteps: 1.5': [llm('maxSteps: 1.5'), ['5:17', 'must be a whole number']],
    'maxSteps: 0x10': [llm('maxSteps: 0x10'), ['5:17', 'must be a whole number']],
    'a bad duration': [llm('tools: [{name: calculator, timeout: 5x}]'), ['5:43', 'must be a duration such as 500ms']],
    'a duration no timer can hold': [`${start}onDisconnect: {cancelAfter: 30d}`, ['3:29', 'at most 24d']],
    'a bad policy': [
      `${start}onBusy: quue`,
      ['3:9', 'must be one of interrupt, queue, reject, steer (did you mean "queue"?)'],
    ],
    'a bad disconnect': [`${start}onDisconnect: never`, ['3:15', 'must be cancel, detach or {cancelAfter: 15s}']],
    'a misspelt key in a union': [`${start}onDisconnect: {cancelafter: 1s}`, ['3:16', '(did you mean "cancelAfter"?)']],
    'messages that are no reference': [llm('messages: hi'), ['5:17', 'must be a reference such as $input.messages']],
    'an unknown role': [
      llm('messages: [{role: usr, content: x}]'),
      ['5:25', '"role" must be one of system, user, assistant'],
    ],
    'a message of text': [llm('messages:', '  - hi'), ['6:11', 'item 1 of "messages" must be {role, content}']],
    'a result that no step sets': [
      'workflow:\n  - {id: a, type: llm, result: first}\n  - id: b\n    type: output-generator\n    config:\n      template: $frist.text',
      ['6:17', 'unknown variable $frist.text: no earlier step has the result "frist" (did you mean "first"?)'],
    ],
    'the same through stepResult': [
      llm('system: $stepResult.nope.x'),
      ['5:15', 'no earlier step has the result "nope"'],
    ],
    "a step's own result": [
      'workflow: [{id: a, type: llm, config: {system: $r}, result: r}]',
      ['1:48', 'a later step sets "r"'],
    ],
    'a result of a later step': [
      'workflow:\n  - {id: a, type: llm, config: {system: "so: $late?"}}\n  - {id: b, type: llm, result: late}',
      ['2:41', 'a later step sets "late"; move it before this one'],
    ],
    'a dollar that means itself': [
      llm('system: |', '  Use $HOME.'),
      ['5:15', 'write $$HOME for a literal dollar sign'],
    ],
    '$env alone': [llm('system: $env'), ['5:15', '$env.NAME']],
    'return of what after sets': [
      `${start}return: $late\nafter: [{id: b, type: llm, result: late}]`,
      ['3:9', 'a later step sets "late"'],
    ],
    'an output-generator of nothing': [
      'workflow: [{id: a, type: output-generator}]',
      ['1:12', 'exactly one of "template" and "json"'],
    ],
    'both template and json': [
      'workflow: [{id: a, type: output-generator, config: {template: 1, json: x}}]',
      ['1:52', 'exactly one of "template" and "json"'],
    ],
    '!!js/function': [
      'workflow: !!js/function "f(){}"',
      ['1:11', 'the tag !!js/function is not allowed'],
      ['1:25', 'must be a list'],
    ],
    '!!int': [llm('maxSteps: !!int 3'), ['5:17', 'the tag !!int is not allowed']],
    '!custom': [`workflow: !custom\n  - {id: a, type: llm}`, ['1:11', 'the tag !custom is not allowed']],
    'a tag of the wrong kind': [llm('system: !!map x'), ['5:15', 'the tag !!map does not match a string']],
    'a prototype': [`${start}return:\n  __proto__: {a: 1}`, ['4:3', 'the key "__proto__" is not allowed']],
    'a key of every prototype': [`${start}constructor: 1`, ['3:1', 'unknown key "constructor"']],
    'a merge key': [llm('<<: {stream: true}'), ['5:7', 'merge keys (<<) are not supported']],
    'a key that is a map': [`${start}{a: b}: c`, ['3:1', 'a key must be a name, not a map']],
    'an unknown alias': [llm('system: *nobody'), ['5:15', 'unknown alias *nobody']],
    'an alias inside itself': [`${start}return: &r [*r]`, ['3:13', 'unknown alias *r']],
    'an anchor that hides an older one of its name': [`${start}return: [&r x, &r [*r]]`, ['3:20', 'unknown alias *r']],
    'a reserved result': [
      `${start}  - {id: b, type: llm, result: input}\n  - {id: c, type: llm, result: env}\n  - {id: d, type: llm, result: stepResult}`,
      ['3:32', 'is a reserved name (input, env, user, stepResult)'],
      ['4:32', 'is a reserved name'],
      ['5:32', 'is a reserved name'],
    ],
    'two documents': [`${start}---\n${start}`, ['3:1', 'a file holds only one agent']],
    'a tab': ['workflow:\n\t- a', ['2:1', 'use spaces']],
    'a broken quote': [llm('system: "x'), ['5:17', 'unexpected end of the stream within a double quoted scalar']],
    'a colon in plain text': [llm('system: Note: be kind'), ['5:19', 'quote a string that contains ": "']],
  }
  for (const [title, [text, ...expected]] of Object.entries(table)) {
    test(title, () => {
      expect(faultsOf(text)).toEqual(
        expected.map(([place, fragment]) => {
          const [line, column] = place.split(':').map(Number)
          return { line, column, message: expect.stringContaining(fragment) }
        }),
      )
    })
  }

  test('all faults of a file at once, in its order, as file:line:col lines', () => {
    const faults = faultsOf(llm('stream: maybe', 'tools: [foo]', 'sytem: hi').replace('id: a', 'idd: a'))
    expect(formatFaults('agents/a.yaml', faults).split('\n')).toEqual([
      'agents/a.yaml:2:5 unknown key "idd" (did you mean "id"?); known keys: id, type, config, result, budget, timeouts',
      'agents/a.yaml:5:15 "stream" must be true or false, not "maybe"',
      expect.stringMatching(/^agents\/a.yaml:6:15 unknown tool "foo"/),
      expect.stringMatching(/^agents\/a.yaml:7:7 unknown key "sytem" \(did you mean "system"\?\)/),
    ])
  })

  test('the error is a MillraceError whose message holds the places', () => {
    expect(() => parsePipeline('workflow: []')).toThrow(MillraceError)
    expect(() => parsePipeline('workflow: []')).toThrow(/^1:11 "workflow" has no steps/)
  })

  test('lines are counted alike with any line end', () => {
    const text = llm('stream: true', 'stream: false')
    for (const end of ['\r\n', '\r']) {
      expect(faultsOf(text.replaceAll('\n', end))).toMatchObject([{ line: 6, column: 7 }])
    }
  })

  test('without known names, names are not checked', () => {
    const text = llm('model: who:knows', 'tools: [foo]', 'onFinish: bar')
    expect(faultsOf(text)).toHaveLength(3)
    expect(parsePipeline(text).workflow).toHaveLength(1)
    expect(parsePipeline('workflow: [{id: a, type: mine, config: {x: 1}}]').workflow[0]).toMatchObject({
      type: 'custom',
      stepType: 'mine',
    })
  })
})

describe('bounds', () => {
  test('an alias bomb', () => {
    const levels = 'abcdefghi'.split('').map((name, i, all) => {
      const items = Array.from({ length: 9 }, () => (i === 0 ? 'x' : `*${all[i - 1]}`))
      return `${name}: &${name} [${items.join(', ')}]`
    })
    expect(faultsOf(`return:\n  ${levels.join('\n  ')}`)[0]?.message).toContain(
      'more than 100000 values, counting aliases',
    )
  })
  test('depth, also through aliases', () => {
    expect(faultsOf(`return: ${'['.repeat(5000)}`)[0]?.message).toContain('nested deeper than 100 levels')
    const nest = (inner: string) => '['.repeat(60) + inner + ']'.repeat(60)
    expect(faultsOf(`a: &a ${nest('x')}\nb: ${nest('*a')}`)[0]?.message).toContain('nested deeper than 100 levels')
  })
  test('size and number of values', () => {
    expect(faultsOf(' '.repeat(1_000_001))[0]?.message).toContain('larger than 1 MB')
    expect(faultsOf(`return: [${'[],'.repeat(150_000)}]`)[0]?.message).toContain('more than 100000 values')
  })
})

describe('types', () => {
  test('defaults of an llm step', () => {
    expect(parsePipeline('workflow: [{id: a, type: llm}]', known).workflow[0]).toEqual({
      id: 'a',
      type: 'llm',
      line: 1,
      config: { messages: '$input.messages', stream: false, tools: [], maxSteps: 5, retries: 2 },
    })
  })
  test('the schema says the type, quotes do not', () => {
    expect(configOf('stream: false').stream).toBe(false)
    expect(configOf('stream: "true"').stream).toBe(true)
    expect(configOf('maxSteps: "7"').maxSteps).toBe(7)
    expect(configOf('maxSteps: 7').maxSteps).toBe(7)
    expect(configOf('system: 7').system).toBe('7')
    expect(configOf('temperature: 0.5').temperature).toBe(0.5)
    expect(configOf('seed: -3').seed).toBe(-3)
    expect(configOf('headers: {x-retries: 3}').headers).toEqual({ 'x-retries': '3' })
  })
  test('tools by name or in full, with a timeout in any unit', () => {
    const times = { '30s': 30_000, '5m': 300_000, '500ms': 500, '1500': 1500, '1.5s': 1500, '"2 h"': 7_200_000 }
    for (const [written, timeout] of Object.entries(times)) {
      expect(
        configOf(`tools: [getCurrentTime, {name: calculator, approval: true, timeout: ${written}}]`).tools,
      ).toEqual([{ name: 'getCurrentTime' }, { name: 'calculator', approval: true, timeout }])
    }
  })
  test('messages in the file', () => {
    const { messages } = configOf(
      'messages:',
      '  - { role: system, content: Be kind }',
      '  - { role: user, content: [{ type: text, text: "$input.question" }] }',
      '  - { role: assistant, content: 4 }',
    )
    expect(messages).toEqual([
      { role: 'system', content: 'Be kind' },
      { role: 'user', content: [{ type: 'text', text: '$input.question' }] },
      { role: 'assistant', content: '4' },
    ])
  })
  test('models as people write them', () => {
    for (const model of [
      'gemini-2.0-flash',
      'gpt-5',
      'o3-mini',
      'claude-sonnet-4',
      'ollama:qwen3:8b',
      '$input.model',
    ]) {
      expect(configOf(`model: "${model}"`).model).toBe(model)
    }
  })
  test('policies', () => {
    const policies = 'onDisconnect: {cancelAfter: 15s}\nonBusy: queue\nhistory: server\nrecover: true'
    expect(parsePipeline(`workflow: [{id: a, type: llm}]\n${policies}`, known)).toMatchObject({
      onDisconnect: { cancelAfter: 15_000 },
      onBusy: 'queue',
      history: 'server',
      recover: true,
    })
  })
  test('in templates plain scalars are typed and quoted ones are text', () => {
    const values = `[true, false, null, 4, 1.5, -2e3, "true", '4', "null", 007, 1.0.0, 12345678901234567890, 1e999, yes, !!str 4, ]`
    const typed = [
      true,
      false,
      null,
      4,
      1.5,
      -2000,
      'true',
      '4',
      'null',
      '007',
      '1.0.0',
      '12345678901234567890',
      '1e999',
      'yes',
      '4',
    ]
    const text = [
      `workflow:`,
      `  - { id: a, type: output-generator, config: { template: ${values} } }`,
      `  - { id: b, type: shout, config: { deep: ${values} } }`,
      `  - { id: c, type: llm, config: { providerOptions: { google: { v: ${values} } } } }`,
      `return: { v: ${values}, empty: }`,
    ].join('\n')
    const { workflow, ...pipeline } = parsePipeline(text, known)
    expect(pipeline.return).toEqual({ v: typed, empty: null })
    expect(workflow).toMatchObject([
      { config: { template: typed } },
      { type: 'custom', stepType: 'shout', config: { deep: typed } },
      { config: { providerOptions: { google: { v: typed } } } },
    ])
  })
  test('anchors and aliases', () => {
    const text =
      llm('system: &kind Be kind', 'tools: &t [calculator]') +
      '\n  - {id: b, type: llm, config: {system: *kind, tools: *t}}'
    expect(parsePipeline(text, known).workflow[1]).toMatchObject({
      config: { system: 'Be kind', tools: [{ name: 'calculator' }] },
    })
  })
  test('later steps, return and after see earlier results', () => {
    const text = [
      'workflow:',
      '  - {id: a, type: llm, result: first-one}',
      '  - {id: b, type: output-generator, result: second, config: {json: $first-one.text}}',
      'return: {a: $second, b: $stepResult.first-one.text, c: $env.HOME, d: costs $5}',
      'after: [{id: c, type: shout, config: {x: "$second."}, result: third}, {id: d, type: shout, config: {x: $third}}]',
    ].join('\n')
    expect(faultsOf(text)).toEqual([])
  })
  test('"constructor" in a template is a key like any other', () => {
    const { return: value } = parsePipeline('workflow: [{id: a, type: llm}]\nreturn: {constructor: 1}', known)
    expect(Object.getOwnPropertyNames(value)).toEqual(['constructor'])
  })
})
