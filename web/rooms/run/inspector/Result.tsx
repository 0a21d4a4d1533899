/** The result of a tool: as a tree, or its beginning when it is too large to be drawn. */
import type { EntryOf } from '../../../../src/part/entry.ts'
import { Button } from '../../../kit/Button.tsx'
import { downloadText } from '../../../kit/download.ts'
import { bytes } from '../../../kit/format.ts'
import { JsonTree } from '../../../kit/JsonTree.tsx'
import css from './Inspector.module.css'

/** `handle`: the model was told it shortened. */
export function Result({ entry, handle }: { entry: EntryOf<'tool-result'>; handle?: string | undefined }) {
  const { result, isError, outcome, preliminary } = entry
  return (
    <div className={css.result} data-piece="result" data-failed={isError || undefined}>
      <h4>{preliminary ? 'progress' : (outcome ?? (isError ? 'error' : 'result'))}</h4>
      {handle !== undefined && (
        <p className={css.note} data-testid="handle">
          The model got the beginning, the end, and the handle <code>{handle}</code>, with which it reads the rest.
        </p>
      )}
      <Large value={result} name="result" />
    </div>
  )
}

const largest = 2 * 1024 ** 2
const head = 2048

/** Over 2 MB: the beginning, and a file. */
export function Large({ value, name }: { value: unknown; name: string }) {
  const text = typeof value === 'string' ? value : undefined
  const size = text?.length ?? (isLarge(value) ? JSON.stringify(value).length : 0)
  if (size <= largest) return <JsonTree value={value} name={name} />
  const whole = text ?? JSON.stringify(value)
  return (
    <>
      <pre className={css.pre}>{whole.slice(0, head)}…</pre>
      <Button onClick={() => downloadText(`${name}.${text === undefined ? 'json' : 'txt'}`, whole)}>
        Download all ({bytes(size)})
      </Button>
    </>
  )
}

/** Whether it may be over 2 MB, without making it a text. */
function isLarge(value: unknown, budget = { left: largest }): boolean {
  if (typeof value === 'string') budget.left -= value.length
  else if (typeof value === 'object' && value !== null) {
    for (const each of Object.values(value)) if (isLarge(each, budget)) return true
  } else budget.left -= 8
  return budget.left < 0
}
