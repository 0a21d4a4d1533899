/** What the server finds in the text, below the editor. */
import { Button } from '../Button.tsx'
import type { AgentFault } from '../../../src/part/agent-tree.ts'
import css from './Faults.module.css'

interface Props {
  faults: readonly AgentFault[]
  state: 'read-only' | 'no-token' | 'unchecked' | 'changed' | 'saved' | 'for-one-run'
  onLine(line: number): void
  onFix(fault: AgentFault): void
}

const words = {
  'read-only': 'Read-only. To allow editing, set server.edit in the config.',
  'no-token': 'Read-only. To edit, open the address for editing that millrace serve prints.',
  unchecked: 'Checking',
  changed: 'No mistakes. Not saved yet.',
  saved: 'No mistakes.',
  'for-one-run': 'No mistakes. Only the new run and its conversation have this text.',
}

export function Faults({ faults, state, onLine, onFix }: Props) {
  if (faults.length === 0) {
    return (
      <output className={css.fine} data-state={state}>
        {words[state]}
      </output>
    )
  }
  return (
    <ul className={css.faults} aria-label="Mistakes">
      {faults.map((fault, i) => (
        <li key={i} data-testid="agent-fault">
          <button type="button" className={css.fault} onClick={() => onLine(fault.line)}>
            <span className="num">
              {fault.line}:{fault.column}
            </span>{' '}
            {fault.message}
          </button>
          {fault.fix !== undefined && <Button onClick={() => onFix(fault)}>Change to “{fault.fix.text}”</Button>}
        </li>
      ))}
    </ul>
  )
}
