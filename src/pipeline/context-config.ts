/** `context` of a step: what happens when the conversation is longer than the window of the model. */
import { z } from 'zod'
import { child } from './check.ts'
import { checkModelName } from './names.ts'
import type { Step } from './pipeline.ts'
import { textOf, type PipelineReader } from './reader.ts'
import { map, nameOf, percent, prompt, tokens } from './scalars.ts'
import type { Node } from './tree.ts'

/** How a loop stays within its model's window. */
export interface ContextConfig {
  /** Tokens. Default: that of the config; else it is learned from the provider's error. */
  window?: number
  /** The share of the window, from 0 to 1, from which on the conversation is summarized before a call. `none`: only after an overflow. */
  summarizeAt: number | 'none'
  /** Tokens of the newest messages that stay as they are. Default: 20,000, and at most a quarter of the window. */
  keep?: number
  summary?: {
    /** Default: the models of the step. */
    model?: string
    /** What a summary must have. */
    system?: string
  }
}

const defaultSummarizeAt = 0.75

export function contextConfig() {
  return map({
    window: tokens(1000)
      .optional()
      .describe(
        "Tokens of the model's window: 200k, 1m. Default: models.windows of the config, else it is learned from the provider's error.",
      ),
    summarizeAt: z
      .union([percent(10, 95), z.literal('none')], 'must be a share from 10% to 95%, or none')
      .default(defaultSummarizeAt)
      .describe(
        'From this share of the window on, by an estimate before each call, the older messages are summarized. none: only after the provider has refused a prompt. Default: 75%.',
      ),
    keep: tokens(0)
      .optional()
      .describe(
        'Tokens of the newest messages that stay as they are. Default: 20k, and at most a quarter of the window.',
      ),
    summary: map({
      model: nameOf('models').optional().describe('The model that writes the summary. Default: the model of the step.'),
      system: prompt.optional().describe('What the summary must have: a string, or { file: path }.'),
    })
      .optional()
      .describe('How the summary is made.'),
  })
    .optional()
    .describe(
      'What happens when the conversation is longer than the window of the model: the older messages are told in fewer words. Without it the call fails.',
    )
}

/** A window that cannot hold what stays, and a share of a window that nobody knows. */
export function checkContext(node: Node, { faults, known, warnings }: PipelineReader): void {
  const context = child(node, 'context')
  const [window, keep] = (['window', 'keep'] as const).map((key) => {
    const at = child(context, key)
    const { data } = tokens(0).safeParse(textOf(at))
    return at === undefined || data === undefined ? undefined : { at: at.at, value: data }
  })
  if (window && keep && keep.value >= window.value)
    faults.add(
      keep.at,
      `"keep" must be smaller than "window": ${keep.value} tokens stay, and the window has ${window.value}`,
    )
  else if (window) {
    const system = textOf(child(node, 'system')) ?? ''
    // Prose and code: what is surely too long is a mistake.
    const fixed = Math.floor(system.length / 5)
    const kept = keep?.value ?? 0
    if (fixed + kept >= window.value)
      faults.add(
        window.at,
        `the window of ${window.value} tokens is smaller than "system" (about ${fixed}) and "keep" (${kept})`,
      )
  }
  const model = child(child(context, 'summary'), 'model')
  if (known && model) checkModelName(model, known, faults)
  const share = child(context, 'summarizeAt')
  if (share === undefined || textOf(share) === 'none' || window !== undefined || known?.windows === undefined) return
  const models = child(node, 'model')
  const first = models?.kind === 'list' ? models.items[0] : models
  const isKnown = first === undefined ? known.windows.length > 0 : known.windows.includes(textOf(first) ?? '')
  if (isKnown) return
  const cure = 'add "window" here, or the model to models.windows in the config'
  const message = `the window of the model is not known, so "summarizeAt" has no effect until the provider has refused a prompt; ${cure}`
  warnings.push({ line: faults.lineOf(share.at), column: 1, message })
}

/** Whether a step summarizes what is longer than its model's window. */
export function hasContext(steps: readonly Step[]): boolean {
  return steps.some((step) => {
    if (step.type === 'llm' || step.type === 'router') return step.config.context !== undefined
    if (step.type === 'condition') return hasContext(step.config.then) || hasContext(step.config.else)
    if (step.type === 'loop') return hasContext(step.config.steps)
    return step.type === 'parallel' && step.config.branches.some((branch) => hasContext(branch.steps))
  })
}
