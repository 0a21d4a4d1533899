/** Writes to stdout and waits while the reader is too slow. Also resolves if stdout is closed. */
import type { CommandContext } from './context.ts'

export async function writeOut(context: CommandContext, text: string): Promise<void> {
  const { stdout } = context
  if (stdout.write(text)) return
  const done = Promise.withResolvers<void>()
  const over = () => done.resolve()
  for (const event of ['drain', 'close', 'error']) stdout.once(event, over)
  await done.promise
  for (const event of ['drain', 'close', 'error']) stdout.off(event, over)
}
