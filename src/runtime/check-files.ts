/** Refuses a file that no model of the first step can take, before the run starts: nothing has been said then, and the thread is as before. */
import { MillraceError } from '../part/error.ts'
import { messagesOf } from '../part/message.ts'
import type { ModelResolver } from '../models/language-model.ts'
import { sayableFiles } from '../models/model.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

/** Throws `bad-input`. What depends on references or earlier steps is not known here: then the model call refuses. */
export async function checkFiles(
  models: ModelResolver,
  { workflow }: Pipeline,
  input: Record<string, unknown>,
): Promise<void> {
  const first = workflow.find(({ type }) => type !== 'memory')
  if (first?.type !== 'llm' && first?.type !== 'router') return
  const { model = models.defaultModel, fallbacks = [], providerOptions } = first.config
  const names = [model, ...fallbacks]
  if (first.config.messages !== '$input.messages') return
  let refusal: MillraceError | undefined
  for (const name of names) {
    if (name === undefined || name.includes('$')) return
    try {
      await sayableFiles(models.resolve(name), {
        messages: messagesOf(input),
        ...(providerOptions && { providerOptions }),
      })
      return
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== 'bad-input') return
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
}
