/** The schema of a file of test cases. Editors and docs show the descriptions. */
import { z } from 'zod'
import { outcomes } from '../part/part.ts'
import { duration, flag, integer, list, map, name, number, oneOf, text } from '../pipeline/scalars.ts'

const texts = () => z.union([text, list(text)], 'must be a string or a list of strings')

const conditions = () => ({
  contains: texts().optional().describe('Texts that must occur in the answer.'),
  matches: texts().optional().describe('Regular expressions that must match somewhere in the answer.'),
  equals: texts().optional().describe('The whole answer, without spaces around it.'),
})

const toolCall = map({
  name: name.describe('Name of the tool.'),
  input: z
    .unknown()
    .optional()
    .describe(
      'Arguments of the call. In maps, keys that are not given may have any value; everything else must be equal.',
    ),
  times: integer(0).optional().describe('How often it is called with this input. Default: at least once. 0: never.'),
})

const expectation = map({
  outcome: oneOf(outcomes).optional().describe('How the run ends. Default: completed.'),
  error: name.optional().describe('Code of the error with which the run ends.'),
  text: z
    .union(
      [
        text,
        map({
          ...conditions(),
          not: map(conditions()).optional().describe('What must not hold for the answer.'),
        }),
      ],
      'must be a text that the answer contains, or a map with contains, matches, equals, not',
    )
    .optional()
    .describe('What must hold for the answer’s text. A string: the answer contains it.'),
  json: z
    .record(z.string(), z.unknown(), 'must be a map: path → value')
    .optional()
    .describe('Paths of the output, such as items[0].price, and the values there. `$` is the whole output.'),
  tools: z
    .union(
      [
        list(toolCall),
        map({
          calls: list(toolCall).describe('The calls.'),
          inOrder: flag.optional().describe('true: the calls happen in this order; others may come between them.'),
          only: flag.optional().describe('true: no other tool is called.'),
        }),
      ],
      'must be a list of calls, or a map with the keys calls, inOrder, only',
    )
    .optional()
    .describe('The tool calls of the model, in any order.'),
  steps: z
    .union(
      [
        list(name),
        map({
          ran: list(name).optional().describe('Steps that run.'),
          skipped: list(name).optional().describe('Steps that do not run.'),
        }),
      ],
      'must be a list of step ids, or a map with the keys ran, skipped',
    )
    .optional()
    .describe('Ids or paths of steps that run.'),
  budget: map({
    tokens: integer(0).optional().describe('Maximum number of tokens, input and output.'),
    usd: number(0).optional().describe('Maximum cost in US dollars, from the prices in the config.'),
    seconds: number(0).optional().describe('Maximum duration in seconds; of a recorded case, that of the recording.'),
    steps: integer(0).optional().describe('Maximum number of model calls and tool calls.'),
  })
    .optional()
    .describe('What the run may use.'),
  judge: map({
    agent: name.describe('Id of the agent that judges. Its output is a number, or a map with `score`.'),
    threshold: number(-Infinity).describe('The lowest score with which the case passes.'),
    question: text.optional().describe('What to judge; `$input.question` of the judging agent.'),
  })
    .optional()
    .describe('Lets another agent judge the answer.'),
})

const answer = map({
  tool: name.optional().describe('Only for requests about this tool.'),
  approve: flag.optional().describe('Whether to approve the call.'),
  reason: text.optional().describe('Reason for a denial.'),
  input: z.unknown().optional().describe('Other arguments for an approved call.'),
  output: z.unknown().optional().describe('Result of a client tool.'),
  error: text.optional().describe('Error of a client tool.'),
  value: z.unknown().optional().describe('Answer to a question of a step.'),
  cancel: flag.optional().describe('true: a question of a step gets no value.'),
})

const turnKeys = {
  message: text.optional().describe('The user’s message.'),
  input: z.unknown().optional().describe('The input of the run: `$input`. `message` adds `messages` to it.'),
  answers: list(answer)
    .optional()
    .describe('Answers to approvals, client tools and questions, in order. The last one that fits answers the rest.'),
  expect: expectation.optional().describe('What must hold. Without it: the run completes.'),
}

const strict = flag
  .optional()
  .describe('true: a prompt that differs from the recorded one is a failure, not a warning.')

const tools = oneOf(['recorded', 'live'])
  .optional()
  .describe(
    'Where results of the server’s tools come from: the recording (the default), or the tools themselves (live). Callbacks are only called when live.',
  )

export const caseSchema = map({
  name: name.describe('Name of the case, unique in the file. Its recording is named after it.'),
  ...turnKeys,
  turns: list(map(turnKeys)).min(1, 'has no turns').optional().describe('A conversation: one run for each turn.'),
  strict,
  tools,
})

export const caseFileSchema = map({
  agent: name.describe('Id of the agent.'),
  models: list(name).min(1, 'has no models').optional().describe('Run every case with each of these models.'),
  strict,
  tools,
  timeout: duration(1).optional().describe('Time for one case. Default: 5m.'),
  cases: list(caseSchema)
    .min(1, 'has no cases; add one: - { name: "says hello", message: "Hello" }')
    .describe('The cases.'),
})

export type CaseInput = z.infer<typeof caseSchema>
export type TurnInput = Pick<CaseInput, 'message' | 'input' | 'answers' | 'expect'>
export type ExpectInput = z.infer<typeof expectation>
export type AnswerInput = z.infer<typeof answer>
