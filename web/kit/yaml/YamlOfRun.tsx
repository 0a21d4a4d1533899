/** The YAML of an agent for one run, in the editor and with the checks of the agent's room. Nothing is saved. */
import { useEffect, useState } from 'react'
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'
import { Faults } from './Faults.tsx'
import type { Schema } from './schema-options.ts'
import { useAgentCheck } from './use-agent-check.ts'
import { withFix } from './with-fix.ts'
import YamlEditor from './YamlEditor.tsx'

interface Props {
  agent: string
  /** As the run had it. */
  original: string
  text: string
  onText(text: string): void
  onFaults(count: number): void
}

export default function YamlOfRun({ agent, original, text, onText, onFaults }: Props) {
  const { value: schema } = useResource('agent-schema', (signal) => api<Schema>('/api/agents/schema', { signal }))
  const checked = useAgentCheck(agent, text, true)
  const [pointed, setPointed] = useState<{ line: number }>()
  const faults = checked?.faults ?? []
  useEffect(() => onFaults(faults.length), [faults.length, onFaults])
  return (
    <>
      <YamlEditor
        text={text}
        onText={onText}
        isReadOnly={false}
        faults={faults}
        schema={schema}
        pointed={pointed}
        onLine={ignored}
        theirs={undefined}
        tab="leaves"
      />
      <Faults
        faults={faults}
        state={checked === undefined ? 'unchecked' : text === original ? 'saved' : 'for-one-run'}
        onLine={(line) => setPointed({ line })}
        onFix={(fault) => onText(withFix(text, fault))}
      />
    </>
  )
}

function ignored(): void {
  // There is no drawing that follows the cursor.
}
