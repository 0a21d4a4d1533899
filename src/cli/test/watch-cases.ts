/** `millrace test --watch`: runs the cases again when an agent, a prompt file or a case changes. */
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CommandContext } from '../context.ts'
import { wholeMessage, MillraceError, messageOf } from '../../part/error.ts'
import { watchFolder } from '../../project/watch-folder.ts'
import type { Lab } from '../../regress/lab.ts'
import { printable } from '../printable.ts'
import { paint } from '../style.ts'
import { casesFolder } from './find-cases.ts'

/** ms: one save causes several events. */
const settleTime = 50

/** Resolves when the signal aborts, with the code of the last run. */
export async function watchCases(
  context: CommandContext,
  lab: Lab,
  paths: readonly string[],
  run: () => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  const { dir } = lab.options
  const roots =
    paths.length > 0 ? paths.map((path) => (isFolder(context, path) ? path : dirname(path))) : [casesFolder(dir)]
  let code = 0
  let changed = Promise.withResolvers<void>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const tell = () => {
    clearTimeout(timer)
    timer = setTimeout(() => changed.resolve(), settleTime)
  }
  signal.addEventListener('abort', () => changed.resolve(), { once: true })
  lab.agents.watch(tell, (file) => say(context, `${file} is read at the start: start again to use what is new in it`))
  const watched = new Map<string, () => void>()
  while (!signal.aborted) {
    changed = Promise.withResolvers()
    // Folders may have been added.
    for (const folder of roots.flatMap((root) => foldersIn(context, root))) {
      if (!watched.has(folder))
        watched.set(
          folder,
          watchFolder(context.path(folder), (file) => isCase(file) && tell()),
        )
    }
    code = await run().catch((error: unknown) => {
      say(context, error instanceof MillraceError ? wholeMessage(error) : messageOf(error))
      return 2
    })
    if (signal.aborted) break
    say(context, 'waiting for changes (Ctrl-C to stop)')
    await changed.promise
  }
  clearTimeout(timer)
  for (const stop of watched.values()) stop()
  lab.agents.close()
  return code
}

function say(context: CommandContext, text: string): void {
  context.stderr.write(`${paint(context, 'dim', printable(text), context.stderr)}\n`)
}

function isCase(file: string | null): boolean {
  return file === null || /\.ya?ml$|\.ndjson$/u.test(file)
}

function isFolder(context: CommandContext, path: string): boolean {
  return statSync(context.path(path), { throwIfNoEntry: false })?.isDirectory() === true
}

function foldersIn(context: CommandContext, dir: string): string[] {
  if (!isFolder(context, dir)) return []
  const inside = readdirSync(context.path(dir), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name))
  return [dir, ...inside.filter((each) => !each.includes('node_modules'))]
}
