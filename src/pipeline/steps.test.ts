/** Steps inside steps: their faults, and what a step may refer to from where it stands. */
import { describe, expect, test } from 'vitest'
import { agentIdFault } from './names.ts'
import { checkCalls } from './calls.ts'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Known, Pipeline } from './pipeline.ts'

const known: Known = {
  stepTypes: [],
  tools: ['calculator'],
  callbacks: [],
  providers: ['demo'],
  agents: ['helper', 'writer'],
  mcpServers: ['files'],
}

function faultsOf(text: string, names: Known = known): string[] {
  try {
    parsePipeline(text, names)
  } catch (error) {
    if (error instanceof PipelineError)
      return error.faults.map(({ line, column, message }) => `${line}:${column} ${message}`)
    throw error
  }
  return []
}

/** A step of this type with this config, after one that sets `$first`. The config is on line 3 and begins in column 36. */
function step(type: string, config: string, more = ''): string {
  const id = `{id: s, type: ${type},`.padEnd(25)
  return `workflow:\n  - {id: f, type: output-generator, config: {json: $input.text}, result: first}\n  - ${id}config: ${config}${more}}`
}
const say = (id: string, template: string, result = '') =>
  `{id: ${id}, type: output-generator, config: {template: ${template}}${result && `, result: ${result}`}}`

const table: Record<string, [text: string, ...faults: string[]]> = {
  'call-agent without an agent': [step('call-agent', '{}'), '3:38 missing key "agent"'],
  'an unknown agent': [step('call-agent', '{agent: helpr}'), '3:46 unknown agent "helpr" (did you mean "helper"?)'],
  'an agent elsewhere': [step('call-agent', '{agent: ../x}'), '3:46 "agent" must be an agent id, without "/"'],
  'an agent in part a variable': [
    step('call-agent', '{agent: bot-$input.kind}'),
    '"agent" must be an id or a single reference',
  ],
  'an agent that nobody sets': [step('call-agent', '{agent: $nobody}'), 'unknown variable $nobody'],
  'input of text': [step('call-agent', '{agent: helper, input: hi}'), '"input" must be a map, or a reference'],
  'mcp-tool without its names': [step('mcp-tool', '{}'), 'missing key "server"', 'missing key "tool"'],
  'an unknown server': [
    step('mcp-tool', '{server: file, tool: read}'),
    'unknown MCP server "file" (did you mean "files"?)',
  ],
  'what makes an answer, in a router': [
    step('router', '{stream: true, output: {schema: {a: string}}}'),
    'unknown key "stream"; known keys: model, system',
    'unknown key "output"',
  ],
  'what a router has in common with llm': [
    step('router', '{model: nope, tools: [calc], toolChoice: {tool: calc2}, onFinish: nobody, system: $nothing}'),
    'unknown model "nope"',
    'unknown tool "calc"; known tools: calculator',
    '"toolChoice" names "calc2"',
    'unknown callback "nobody"',
    'unknown variable $nothing',
  ],
  'a tool of one’s own that has the name of the router’s': [
    step('router', '{tools: [calculator, {name: respond, client: true}]}'),
    '3:66 "respond" is a built-in tool of the router; rename yours',
  ],
  'memory without an action': [step('memory', '{}'), 'missing key "action"'],
  'keys of the other action of memory': [
    step('memory', '{action: store, query: $input.topic, limit: 3}'),
    '3:61 "query" applies only to action: recall; remove it',
    '"limit" applies only to action: recall',
  ],
  'facts without store': [step('memory', '{action: recall, facts: [x]}'), '"facts" applies only to action: store'],
  'what memory refers to': [step('memory', '{action: store, facts: [$nothing]}'), 'unknown variable $nothing'],
  'a condition without anything': [step('condition', '{}'), 'missing key "if"', 'missing key "then"'],
  'a condition without steps': [step('condition', '{if: true, then: []}'), '3:55 "then" has no steps; add one'],
  'an expression': [
    step('condition', `{if: $first.n = 5, then: [${say('a', '1')}]}`),
    '3:52 unknown operator "="; write ==',
  ],
  'an expression in quotes': [
    step('condition', `{if: "$first.n = 5", then: [${say('a', '1')}]}`),
    '3:53 unknown operator "="',
  ],
  'a reference in an expression': [
    step('condition', `{if: true and $frist, then: [${say('a', '1')}]}`),
    '3:52 unknown variable $frist: no earlier step has the result "frist" (did you mean "first"?)',
  ],
  'a nested fault': [step('condition', '{if: true, then: [{id: a, type: lllm}]}'), 'unknown step type "lllm"'],
  'an id of a nested step': [
    step('condition', '{if: true, then: [{id: f, type: llm}]}'),
    'duplicate id "f" (first on line 2)',
  ],
  'a result of a nested step': [
    step('condition', `{if: true, then: [${say('a', '1', 'first')}]}`),
    'duplicate result "first" (first on line 2)',
  ],
  'a result of both branches': [
    step('condition', `{if: true, then: [${say('a', '1', 'x')}], else: [${say('b', '1', 'x')}]}`),
    'duplicate result "x"',
  ],
  'a result of the other branch': [
    step('condition', `{if: true, then: [${say('a', '1', 'x')}], else: [${say('b', '$x')}]}`),
    'unknown variable $x: "x" is set in another branch of "s"',
  ],
  'a result from inside a container': [
    `${step('condition', `{if: true, then: [${say('a', '1', 'x')}]}`)}\nreturn: $x?`,
    '4:9 unknown variable $x: "x" is local to "s"; give "s" a result and refer to that',
  ],
  "a container's own result": [
    step('condition', `{if: true, then: [${say('a', '$mine')}]}`, ', result: mine'),
    'a later step sets "mine"',
  ],
  'a later step of the same branch': [
    step('condition', `{if: true, then: [${say('a', '$x')}, ${say('b', '1', 'x')}]}`),
    'a later step sets "x"; move it before this one',
  ],
  'a loop over nothing': [
    step('loop', `{steps: [${say('a', '1')}]}`),
    '3:38 a loop needs exactly one of "over" and "while"',
  ],
  'a loop over both': [
    step('loop', `{over: [1], while: true, steps: [${say('a', '1')}]}`),
    'exactly one of "over" and "while"',
  ],
  'a loop over text': [step('loop', `{over: abc, steps: [${say('a', '1')}]}`), '"over" must be a reference to a list'],
  'a loop without bound': [
    step('loop', `{over: [1], max: 5000, steps: [${say('a', '1')}]}`),
    '"max" must be a whole number from 1 to 1000',
  ],
  'no steps in a loop': [step('loop', '{over: [1]}'), 'missing key "steps"'],
  'an item of while': [step('loop', `{while: true, steps: [${say('a', '$item')}]}`), 'unknown variable $item'],
  'an item outside a loop': [step('output-generator', '{template: $item}'), '$item exists only inside a loop'],
  'an item called otherwise': [
    step('loop', `{over: [1], as: task, steps: [${say('a', '$item')}]}`),
    'unknown variable $item',
  ],
  'a name for the item of while': [
    step('loop', `{while: true, as: x, steps: [${say('a', '1')}]}`),
    '"as" works only with "over"',
  ],
  'an item called index': [step('loop', `{over: [1], as: index, steps: [${say('a', '1')}]}`), '"as" cannot be "index"'],
  'an item called input': [
    step('loop', `{over: [1], as: input, steps: [${say('a', '1')}]}`),
    '"as" is a reserved name',
  ],
  'an item called user': [step('loop', `{over: [1], as: user, steps: [${say('a', '1')}]}`), '"as" is a reserved name'],
  'an item that hides a result': [
    step('loop', `{over: [1], as: first, steps: [${say('a', '1')}]}`),
    `the loop's $first would hide the result "first"`,
  ],
  'a result that hides the item': [
    step('loop', `{over: [1], steps: [${say('a', '1', 'item')}]}`),
    'the result "item" would hide the loop\'s $item',
  ],
  'an item that hides an item': [
    step('loop', `{over: [1], steps: [{id: l, type: loop, config: {over: [1], steps: [${say('a', '1')}]}}]}`),
    '$item already belongs to the surrounding loop; choose another name with "as"',
  ],
  'what a round sets later': [
    step('loop', `{over: [1], steps: [${say('a', '$x')}, ${say('b', '1', 'x')}]}`),
    `$x has no value in the loop's first round; write $x? for the value of the previous round`,
  ],
  'what a round sets, in while': [
    step('loop', `{while: $x == 1, steps: [${say('b', '1', 'x')}]}`),
    "3:46 $x has no value in the loop's first round",
  ],
  'an answer inside a loop': [
    step('loop', '{over: [1], steps: [{id: a, type: llm, config: {stream: true}}]}'),
    'a step inside a loop cannot stream',
  ],
  'an answer deep inside a loop': [
    step(
      'loop',
      '{over: [1], steps: [{id: c, type: condition, config: {if: true, then: [{id: a, type: call-agent, config: {agent: helper, stream: true}}]}}]}',
    ),
    'a step inside a loop cannot stream',
  ],
  'no branches': [step('parallel', '{branches: {}}'), '"branches" has no branches; add one'],
  'branches as a list': [step('parallel', '{branches: [a]}'), '"branches" must be a map: name → list of steps'],
  'a branch of text': [step('parallel', '{branches: {a: llm}}'), '"a" must be a list'],
  'the name of a branch': [
    step('parallel', `{branches: {a/b: [${say('a', '1')}]}}`),
    '3:50 a branch name must contain only letters',
  ],
  'a result of another branch': [
    step('parallel', `{branches: {a: [${say('a', '1', 'x')}], b: [${say('b', '$x')}]}}`),
    '"x" is set in another branch of "s"',
  ],
  'a bad order': [step('parallel', `{order: lve, branches: {a: [${say('a', '1')}]}}`), 'did you mean "live"?'],
  'a key beside config': [
    'workflow:\n  - id: c\n    type: condition\n    if: true\n    then: []',
    '4:5 "if" belongs inside "config"; move it there',
    '5:5 "then" belongs inside "config"; move it there',
  ],
  'a budget twice': [
    'workflow: [{id: a, type: llm, budget: {usd: 1}, config: {budget: {usd: 2}}}]',
    '"budget" is set in "config" and on the step; remove one of the two',
  ],
  'a budget of a word': [
    'workflow: [{id: a, type: llm, budget: {tokens: many}}]',
    '"tokens" must be a whole number from 1',
  ],
  "a run's timeout on a step": [
    'workflow: [{id: a, type: llm, timeouts: {run: 1s}}]',
    'unknown key "run"; known keys: firstToken, idle, step',
  ],
  'no models': [step('llm', '{model: []}'), '"model" is empty; name a model'],
  'a model in a list': [
    step('llm', '{model: ["demo:x", "dmo:y"]}'),
    '3:57 unknown model provider "dmo" (did you mean "demo"?)',
  ],
  'a tool of an unknown server': [step('llm', '{tools: [{mcp: file}]}'), 'unknown MCP server "file"'],
  'a server twice': [step('llm', '{tools: [{mcp: files}, {mcp: files}]}'), 'duplicate server "files"'],
  'a prefix and no tool': [step('llm', '{tools: [files_]}'), 'unknown tool "files_"'],
  'a role that does not exist': [
    step('llm', '{tools: [{name: calculator, approval: {roles: [operater]}}]}'),
    'item 1 of "roles" must be one of user, operator, admin (did you mean "operator"?)',
  ],
  'an approval of no roles': [
    step('llm', '{tools: [{name: calculator, approval: {roles: []}}]}'),
    '"roles" is empty; name a role, or write approval: true',
  ],
  'a misspelt key of an approval': [
    step('llm', '{tools: [{name: calculator, approval: {role: [operator]}}]}'),
    'unknown key "role" (did you mean "roles"?)',
  ],
  'an approval that is a word': [
    step('llm', '{tools: [{name: calculator, approval: operator}]}'),
    '"approval" must be true, false or {roles: [user, operator, admin]}, not "operator"',
  ],
  'a tool without a name': [step('llm', '{tools: [{approval: true}]}'), 'missing key "name"'],
  'a misspelt name': [step('llm', '{tools: [{nmae: calculator}]}'), 'unknown key "nmae" (did you mean "name"?)'],
  'client: maybe': [
    step('llm', '{tools: [{name: ask, client: maybe}]}'),
    'unknown tool "ask"',
    '"client" must be true or false',
  ],
  'parameters of a tool that runs here': [
    step('llm', '{tools: [{name: calculator, parameters: {}}]}'),
    'only client tools have "parameters" here; add client: true',
  ],
  'parameters of a client tool': [
    step('llm', '{tools: [{name: ask, client: true, parameters: {q: txt}}]}'),
    'the type must be one of string',
  ],
  'a client tool named twice': [
    step('llm', '{tools: [calculator, {name: calculator, client: true}]}'),
    'duplicate tool "calculator"',
  ],
  'an output without a schema': [step('llm', '{output: {}}'), 'missing key "schema"'],
  'a schema of a word': [step('llm', '{output: {schema: {a: txt}}}'), 'the type must be one of string'],
}

describe('faults', () => {
  for (const [title, [text, ...expected]] of Object.entries(table)) {
    test(title, () => {
      const faults = faultsOf(text)
      expect(faults).toHaveLength(expected.length)
      for (const [i, fragment] of expected.entries()) expect(faults[i]).toContain(fragment)
    })
  }
})

test('all faults of nested steps at once, each at its place', () => {
  const text = [
    'workflow:',
    '  - id: both',
    '    type: parallel',
    '    config:',
    '      branches:',
    '        a:',
    '          - id: l',
    '            type: loop',
    '            config:',
    '              while: |',
    '                $index < 3',
    '                and $nope',
    '              stepz: []',
    '              steps:',
    '                - { id: x, type: llm, config: { modell: y } }',
    '        b:',
    '          - id: x',
    '            type: cli-agnet',
  ].join('\n')
  expect(faultsOf(text).map((fault) => fault.split(' ').slice(0, 4).join(' '))).toEqual([
    '12:21 unknown variable $nope:',
    '13:15 unknown key "stepz";',
    '15:49 unknown key "modell"',
    '17:17 duplicate id "x"',
    '18:19 unknown step type',
  ])
})

describe('what may be referred to', () => {
  test.each<[string, string]>([
    [
      'what stood before a container',
      step('condition', `{if: $first.ok?, then: [${say('a', '$first')}], else: [${say('b', '$first')}]}`),
    ],
    ['earlier steps of the branch', step('condition', `{if: true, then: [${say('a', '1', 'x')}, ${say('b', '$x')}]}`)],
    ["a container's result", `${step('condition', `{if: true, then: [${say('a', '1')}]}`, ', result: c')}\nreturn: $c`],
    ['item and index', step('loop', `{over: $first.list, steps: [${say('a', '$item.name of $index')}]}`)],
    ['an item by another name', step('loop', `{over: [1], as: task, steps: [${say('a', '$task')}]}`)],
    [
      'a nested loop',
      step(
        'loop',
        `{over: [1], steps: [{id: l, type: loop, config: {over: $item, as: inner, steps: [${say('a', '$item $inner $index')}]}}]}`,
      ),
    ],
    [
      'the round before',
      step(
        'loop',
        `{while: $index == 0 or $x? < 3, steps: [${say('a', '"so far $x?"')}, ${say('b', '1', 'x')}, ${say('c', '$x')}]}`,
      ),
    ],
    [
      'the round before, from a branch',
      step(
        'loop',
        `{over: [1], steps: [{id: c, type: condition, config: {if: true, then: [${say('a', '$x?')}]}}, ${say('b', '1', 'x')}]}`,
      ),
    ],
    ['item and index as results outside loops', `workflow: [${say('a', '1', 'item')}, ${say('b', '$item', 'index')}]`],
    ['through stepResult', step('condition', `{if: $stepResult.first.ok?, then: [${say('a', '$stepResult.first')}]}`)],
    [
      'dollars in quotes of an expression',
      step('condition', `{if: $first.price == "$5" or $first.name == '$nobody', then: [${say('a', '1')}]}`),
    ],
    ['in the input of a call', step('call-agent', '{agent: $first.agent, input: {a: $first}}')],
    [
      'dollars in descriptions of inputs and outputs',
      step('llm', '{output: {schema: {price: {type: string, description: in $USD}}}}'),
    ],
    [
      'tools of a server',
      step(
        'llm',
        '{tools: [files_read, {name: files_list, approval: true}, {mcp: files}], toolChoice: {tool: files_read}}',
      ),
    ],
  ])('%s', (_, text) => expect(faultsOf(text)).toEqual([]))
})

test('a condition and a loop after parsing', () => {
  const { workflow } = parsePipeline(step('loop', `{over: [1, "2", $first], steps: [${say('a', '$item')}]}`), known)
  expect(workflow[1]).toEqual({
    id: 's',
    type: 'loop',
    line: 3,
    config: {
      over: [1, '2', '$first'],
      max: 10,
      as: 'item',
      steps: [{ id: 'a', type: 'output-generator', line: 3, config: { template: '$item' } }],
    },
  })
  const [, condition] = parsePipeline(step('condition', `{if: $first.ok, then: [${say('a', '1')}]}`), known).workflow
  expect(condition).toMatchObject({ config: { if: { text: '$first.ok', root: { kind: 'reference' } }, else: [] } })
})

test('without known names agents and servers are not checked, but ids are', () => {
  const { agents: _, mcpServers: __, ...few } = known
  expect(faultsOf(step('call-agent', '{agent: anyone}'), few)).toEqual([])
  expect(faultsOf(step('mcp-tool', '{server: any, tool: x}'), few)).toEqual([])
  expect(parsePipeline(step('call-agent', '{agent: anyone}')).workflow).toHaveLength(2)
  expect(() => parsePipeline(step('call-agent', '{agent: a/b}'))).toThrow('must be an agent id')
})

test.each(['a/b', '/etc/x', '..', 'a..b', '.', '', 'a\\b', 'a\0b', 'a\nb', 'x'.repeat(201), 5, null])(
  '%j is no id of an agent',
  (id) => expect(agentIdFault(id)).toBeDefined(),
)
test.each(['helper', 'my agent', 'v1.2', 'größe'])('%j may be one', (id) => expect(agentIdFault(id)).toBeUndefined())

describe('calls of agents', () => {
  const calling = (...agents: string[]) => {
    const steps = agents.map((agent, i) => `  - {id: s${i}, type: call-agent, config: {agent: ${agent}}}`)
    return parsePipeline(['workflow:', '  - {id: a, type: llm}', ...steps].join('\n'))
  }
  const check = (agents: Record<string, Pipeline>) =>
    checkCalls(new Map(Object.entries(agents))).map(
      ({ agent, fault }) => `${agent}:${fault.line}:${fault.column} ${fault.message}`,
    )

  test('no circle', () => {
    expect(check({ a: calling('b', 'c'), b: calling('c', '$input.next'), c: calling() })).toEqual([])
  })
  test('an agent that calls itself', () => {
    expect(check({ a: calling('a') })).toEqual(['a:3:48 circular call: a → a; remove one of these calls'])
  })
  test('a circle of three: each of its calls, and no other', () => {
    expect(check({ a: calling('b'), b: calling('c'), c: calling('d', 'a'), d: calling(), e: calling('a') })).toEqual([
      expect.stringContaining('a:3:48 circular call: a → b → c → a'),
      expect.stringContaining('b:3:48 circular call: b → c → a → b'),
      expect.stringContaining('c:4:48 circular call: c → a → b → c'),
    ])
  })
  test('through an alias, and from inside a container', () => {
    const text = step('condition', '{if: true, then: [{id: c, type: call-agent, config: {agent: other}}]}')
    const a = parsePipeline(text)
    const faults = checkCalls(
      new Map([
        ['a', a],
        ['b', calling('alias')],
        ['alias', a],
        ['other', calling('b')],
      ]),
    )
    expect(faults.map(({ agent, fault }) => `${agent}: ${fault.message}`)).toEqual([
      expect.stringContaining('a: circular call: a → other → b → a'),
      expect.stringContaining('b: circular call: b → a → other → b'),
      expect.stringContaining('other: circular call'),
    ])
  })
  test('an unknown agent', () => {
    expect(check({ helper: calling(), a: calling('helpr') })).toEqual([
      'a:3:48 unknown agent "helpr" (did you mean "helper"?); known agents: helper, a',
    ])
  })
})
