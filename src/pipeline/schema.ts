/** The schemas of a file and of what every step has. Each construct says what its keys mean: docs and editors show it. */
import { z } from 'zod'
import type { AnswerLimits, Budget, StepTimeouts, Timeouts } from './pipeline.ts'
import {
  duration,
  flag,
  integer,
  isMap,
  later,
  list,
  map,
  name,
  number,
  oneOf,
  preset,
  text,
  timeLimit,
} from './scalars.ts'

export const budget = map({
  tokens: integer(1).optional().describe('Most tokens, in and out.'),
  usd: number(0).optional().describe('Most US dollars, by the price table.'),
  seconds: number(0).optional().describe('Most seconds from start to end.'),
  steps: integer(1).optional().describe('Most model calls and tool calls.'),
}) satisfies z.ZodType<Budget>

const perStep = {
  firstToken: timeLimit()
    .optional()
    .describe('From the start of a model call to its first content. Default 2m; 10m where the step sets reasoning.'),
  idle: timeLimit()
    .optional()
    .describe('Between two pieces of a model’s stream. Default 2m; 10m where the step sets reasoning.'),
  step: duration(1).optional().describe('The whole of one step.'),
}
export const stepTimeouts = map(perStep) satisfies z.ZodType<StepTimeouts>
const timeouts = map({
  ...perStep,
  run: timeLimit().optional().describe('The whole run. Default 15m, not counting restarts and waiting in a thread.'),
}) satisfies z.ZodType<Timeouts>

const limits = map({
  answerChars: integer(1)
    .optional()
    .describe(
      'Most characters of one model answer, tool calls and files included; default: the config, or 16,777,216.',
    ),
}) satisfies z.ZodType<AnswerLimits>

const reserved = new Set(['input', 'env', 'stepResult'])
export const resultName = name
  .regex(/^(?!\d)\w+(?:-+\w+)*$/, 'must be a name of letters, digits, "_" and inner "-", not starting with a digit')
  .refine((value) => !reserved.has(value), 'is a reserved name (input, env, stepResult); choose another')

/** Also a segment of the paths in the log. */
export const idName = name
  .max(100, 'is longer than 100 characters')
  .regex(/^(?!\.+$)[A-Za-z0-9._-]+$/, 'must contain only letters, digits, "-", "_" and "."')

/** What every step has; its `config` is checked by its type. */
export const step = map({
  id: idName.describe('Name of the step, once in the file; its path in the log.'),
  type: name.describe('What the step does.'),
  config: z.unknown().optional().describe('What its type takes.'),
  result: resultName.optional().describe('Variable that holds the step’s value for later steps: $name.'),
  budget: budget.optional().describe('What this step may spend, with all that runs inside it.'),
  timeouts: stepTimeouts.optional().describe('How long things may take in this step.'),
})

/** The file around its steps. `workflow` and `after` are lists whose items {@link step} checks one by one. */
export const file = map({
  metadata: map({
    name: text.optional().describe('Name for people.'),
    version: text.optional().describe('Version of the agent.'),
    description: text.optional().describe('What the agent does, in a line.'),
    aliases: list(name).optional().describe('Further names it answers to, for instance as an OpenAI model.'),
    hidden: flag
      .optional()
      .describe(
        'true: no list shows it (/v1/models, /api/agents, the start page); it still answers by its name and to other agents.',
      ),
  })
    .default({})
    .describe('What people and clients are told of the agent.'),
  workflow: list(later('step'))
    .min(1, 'has no steps; add one: - { id: answer, type: llm }')
    .describe('The steps, in order; the first one that streams is the answer and the last one that runs.'),
  after: list(later('step'))
    .default([])
    .describe('Steps that run once the answer has been streamed; their output never enters it.'),
  return: z.unknown().optional().describe('Template of the recorded output and of JSON answers.'),
  input: later('shapes')
    .refine(isMap, 'must be a map: name → string, number, boolean, … or a map with "type"')
    .optional()
    .describe('What $input must hold, checked before anything runs; a name that ends in "?" may be missing.'),
  budget: budget.optional().describe('What a run may spend; it ends when more is spent.'),
  timeouts: timeouts.optional().describe('How long things may take.'),
  limits: limits.optional().describe('How much a model may send; the call fails when it sends more.'),
  onDisconnect: z
    .union(
      [
        oneOf(['cancel', 'detach']),
        map({ cancelAfter: duration(0).describe('How long no client has read before the run is cancelled.') }),
      ],
      'must be cancel, detach or {cancelAfter: 15s}',
    )
    .optional()
    .describe('What happens when the client leaves; the default depends on the protocol.'),
  onBusy: oneOf(['interrupt', 'queue', 'reject'])
    .optional()
    .describe('What a second message does while a run of its thread is active; the default depends on the protocol.'),
  history: oneOf(['client', 'server'])
    .optional()
    .describe('Who says which messages came before; the default depends on the protocol.'),
  recover: preset(
    flag,
    false,
    'Go on after a crash from the last complete model or tool call; ended after three in a row that got nowhere.',
  ),
})
