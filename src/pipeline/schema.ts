/** The schemas of an agent file and of the keys that all steps share. Docs and editors show the descriptions. */
import { z } from 'zod'
import { roles } from '../part/principal.ts'
import type { AgentLimits, Budget, StepTimeouts, Timeouts } from './pipeline.ts'
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
  prompt,
  text,
  timeLimit,
} from './scalars.ts'
import { skillList } from './skill-list.ts'

export const budget = map({
  tokens: integer(1).optional().describe('Maximum number of tokens, input and output.'),
  usd: number(0).optional().describe('Maximum cost in US dollars, from the prices in the config.'),
  seconds: number(0).optional().describe('Maximum duration in seconds.'),
  steps: integer(1).optional().describe('Maximum number of model calls and tool calls.'),
}) satisfies z.ZodType<Budget>

const perStep = {
  firstToken: timeLimit()
    .optional()
    .describe(
      'Time from the start of a model call to its first content. Default: 2m, or 10m if the step sets reasoning.',
    ),
  idle: timeLimit()
    .optional()
    .describe('Time between two chunks of a model’s stream. Default: 2m, or 10m if the step sets reasoning.'),
  step: duration(1).optional().describe('Time for one whole step.'),
}
export const stepTimeouts = map(perStep) satisfies z.ZodType<StepTimeouts>
const timeouts = map({
  ...perStep,
  run: timeLimit()
    .optional()
    .describe('Time for the whole run. Default: 15m, not counting restarts and time in the queue of a thread.'),
}) satisfies z.ZodType<Timeouts>

const limits = map({
  answerChars: integer(1)
    .optional()
    .describe(
      'Maximum number of characters of one model answer, including tool calls and files. Default: the value in the config, or 16,777,216.',
    ),
  toolCalls: integer(1)
    .optional()
    .describe(
      'Maximum number of tool calls in one model answer. Default: the value in the config, or 1,000. Those of CLI agents are not counted.',
    ),
  activeRuns: integer(1, 1_000_000)
    .optional()
    .describe(
      'Maximum number of runs of the agent that execute at the same time, over all servers of the store. Requests for more get 429. Runs that are resumed, or taken over from another server, go on above it. Default: any number.',
    ),
  agentCalls: integer(1, 10_000)
    .optional()
    .describe(
      'Maximum number of calls of agent tools in one run, at every depth. The model is told when they are used up. Default: 16.',
    ),
  parallelAgents: integer(1, 1000)
    .optional()
    .describe('Maximum number of agent tools of one run that work at the same time. More calls wait. Default: 4.'),
}) satisfies z.ZodType<AgentLimits>

/** Recorded runs may have results named `user`, so `checkUserName` refuses that in new files only. */
const reserved = new Set(['input', 'env', 'stepResult'])
export const reservedWords = 'is a reserved name (input, env, user, stepResult); choose another'
export const resultName = name
  .regex(/^(?!\d)\w+(?:-+\w+)*$/, 'must be a name of letters, digits, "_" and inner "-", not starting with a digit')
  .refine((value) => !reserved.has(value), reservedWords)

/** Step ids are also segments of paths in the log. */
export const idName = name
  .max(100, 'is longer than 100 characters')
  .regex(/^(?!\.+$)[A-Za-z0-9._-]+$/, 'must contain only letters, digits, "-", "_" and "."')

/** The keys of every step. The step type checks `config`. */
export const step = map({
  id: idName.describe('Id of the step, unique in the file. Used as its path in the log.'),
  type: name.describe('What the step does.'),
  config: z.unknown().optional().describe('Configuration of the step; the keys depend on its type.'),
  result: resultName
    .optional()
    .describe('Name of the variable that stores the step’s value: later steps read it as $name.'),
  budget: budget.optional().describe('Limits of this step, including everything that runs inside it.'),
  timeouts: stepTimeouts.optional().describe('Time limits in this step.'),
})

const savedPrompt = map({
  name: name
    .max(64, 'is longer than 64 characters')
    .regex(/^[\w-]+$/, 'must contain only letters, digits, "-" and "_"')
    .describe('Name of the prompt, unique in the file.'),
  description: text.optional().describe('What it is for, in one line.'),
  arguments: z
    .record(z.string(), text, 'must be a map: name → what it means')
    .optional()
    .describe(
      'Texts that the person gives, by name, each with what it means. They replace {name} in the text. A name that ends in "?" is optional.',
    ),
  text: prompt.min(1, 'is empty; write the message').describe('The message.'),
}).superRefine(({ arguments: given = {}, text: said }, context) => {
  for (const key of Object.keys(given)) {
    const argument = key.replace(/\?$/u, '')
    if (!/^[A-Za-z_][\w-]*$/u.test(argument)) {
      const message = `${JSON.stringify(key)} must consist of letters, digits, "-" and "_"`
      context.addIssue({ code: 'custom', message, path: ['arguments'] })
      continue
    }
    if (key !== argument && Object.hasOwn(given, argument))
      context.addIssue({ code: 'custom', message: `has "${argument}" twice; remove one of them`, path: ['arguments'] })
    else if (!said.includes(`{${argument}}`))
      context.addIssue({ code: 'custom', message: `does not have the argument {${argument}}`, path: ['text'] })
  }
})

function checkPromptNames(prompts: readonly { name: string }[], context: z.core.$RefinementCtx): void {
  const seen = new Set<string>()
  for (const [i, each] of prompts.entries()) {
    if (seen.has(each.name))
      context.addIssue({ code: 'custom', message: `"${each.name}" is taken by another prompt`, path: [i, 'name'] })
    seen.add(each.name)
  }
}

/** The file without its steps: {@link step} checks the items of `workflow` and `after` one by one. */
export const file = map({
  metadata: map({
    name: text.optional().describe('Display name.'),
    version: text.optional().describe('Version of the agent.'),
    description: text.optional().describe('What the agent does, in one line.'),
    aliases: list(name)
      .optional()
      .describe(
        'Other names of the agent, for example as a model of OpenAI. `*` stands for any text: ["gpt-*"]. A name itself comes before those with `*`.',
      ),
    hidden: flag
      .optional()
      .describe(
        'true: the agent is left out of lists (/v1/models, /api/agents, the start page). Requests and other agents can still use it by name.',
      ),
    prompts: list(savedPrompt)
      .superRefine(checkPromptNames)
      .optional()
      .describe('Saved first messages of a user: MCP clients offer them as <agent>.<name>.'),
    mcp: map({
      tasks: oneOf(['never', 'required'])
        .optional()
        .describe(
          'never: a call by MCP is always answered with its result. required: always with a task; clients without tasks are refused. Default: a task for clients that know them, if the run takes longer than server.mcp.taskAfter.',
        ),
      threads: flag
        .optional()
        .describe(
          'true: the tool has a parameter "thread" and its result names the thread, so that a model can go on with a conversation.',
        ),
    })
      .optional()
      .describe('The agent as a tool of MCP clients.'),
  })
    .default({})
    .describe('Information about the agent for people and clients.'),
  workflow: list(later('step'))
    .min(1, 'has no steps; add one: - { id: answer, type: llm }')
    .describe('The steps, in order. The first step that streams is the answer and the last step that runs.'),
  after: list(later('step'))
    .default([])
    .describe('Steps that run after the answer is complete. Their output is not part of the answer.'),
  return: z.unknown().optional().describe('Template for the recorded output and for JSON answers.'),
  input: later('shapes')
    .refine(isMap, 'must be a map: name → string, number, boolean, … or a map with "type"')
    .optional()
    .describe('Schema of $input, checked before any step runs. A name that ends in "?" is optional.'),
  output: later('shapes')
    .refine(isMap, 'must be a map: name → string, number, boolean, … or a map with "type"')
    .optional()
    .describe(
      'Schema of the value of the agent, in the format of "input". A value that does not match is an error (bad-output).',
    ),
  budget: budget.optional().describe('Limits of a run. The run ends when it exceeds one.'),
  timeouts: timeouts.optional().describe('Time limits.'),
  limits: limits.optional().describe('Limits of what a model sends, and of runs at the same time.'),
  access: map({
    roles: list(oneOf([...roles]))
      .optional()
      .describe('Roles of which a caller needs one. Admins need none.'),
    tenants: list(text).optional().describe('Tenants whose members may use it.'),
  })
    .optional()
    .describe('Who may use the agent. To all others it does not exist. Default: everybody who may start runs.'),
  onDisconnect: z
    .union(
      [
        oneOf(['cancel', 'detach']),
        map({ cancelAfter: duration(0).describe('Time without a connected client after which the run is cancelled.') }),
      ],
      'must be cancel, detach or {cancelAfter: 15s}',
    )
    .optional()
    .describe('What happens when the client disconnects. The default depends on the protocol.'),
  onBusy: oneOf(['interrupt', 'queue', 'reject'])
    .optional()
    .describe('What a second message does while a run of its thread is active. The default depends on the protocol.'),
  history: oneOf(['client', 'server'])
    .optional()
    .describe(
      'Where the earlier messages of a conversation come from: the client’s request or the server’s record. The default depends on the protocol.',
    ),
  sticky: flag
    .optional()
    .describe(
      'true: after a handoff, the next message of the conversation goes to the agent that has taken over. It also gets the tool hand_back.',
    ),
  skills: skillList
    .optional()
    .describe(
      'Folders with a SKILL.md, below the folder of this file: skills/pdf, or skills/* for all in skills. The models of the answering steps and of routers see their names and descriptions, and read them with useSkill.',
    ),
  recover: preset(
    flag,
    false,
    'true: after a crash, continue from the last complete model or tool call. The run ends after three crashes in a row without progress.',
  ),
  sideCalls: name
    .optional()
    .describe(
      'The agent that answers requests to /v1 without tools that ask for JSON with a schema, in the place of this one: coding CLIs ask so for titles.',
    ),
})
