/** Where the answers come from, and with which model: what `millrace test` has as `--record` and `--model`. */
import { useState } from 'react'
import { useAgents } from '../../data/hooks.ts'
import type { StartTests } from '../../data/tests.ts'
import css from './Tests.module.css'

export interface Options {
  record: boolean
  /** Empty: those of the case and its agent. */
  model: string
  isOther: boolean
}

export const usualOptions: Options = { record: false, model: '', isOther: false }

export function toStart({ record, model }: Options): StartTests {
  const name = model.trim()
  return { ...(record && { record }), ...(name !== '' && { models: [name] }) }
}

export function useRunOptions() {
  return useState(usualOptions)
}

interface Props {
  options: Options
  isDisabled: boolean
  onChange(options: Options): void
}

export function RunOptions({ options, isDisabled, onChange }: Props) {
  const agents = useAgents().value?.agents ?? []
  const names = agents.flatMap(({ steps }) => steps.flatMap(({ model }) => model ?? []))
  const models = [...new Set(names)].filter((name) => !name.startsWith('$')).toSorted()
  const { record, model, isOther } = options
  return (
    <span className={css.options}>
      <select
        aria-label="Answers"
        className={css.select}
        disabled={isDisabled}
        value={record ? 'record' : 'recorded'}
        onChange={(event) => onChange({ ...options, record: event.target.value === 'record' })}
      >
        <option value="recorded">Recorded answers</option>
        <option value="record">Ask the models, run the tools, record</option>
      </select>
      <select
        aria-label="Model"
        className={css.select}
        disabled={isDisabled}
        value={isOther ? 'other:' : model}
        onChange={({ target: { value } }) =>
          onChange(
            value === 'other:'
              ? { ...options, model: '', isOther: true }
              : { ...options, model: value, isOther: false },
          )
        }
      >
        <option value="">The agent’s model</option>
        {models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        <option value="other:">Other model…</option>
      </select>
      {isOther && (
        <input
          aria-label="Name of the model"
          className={css.model}
          placeholder="openai:gpt-5"
          autoComplete="off"
          spellCheck={false}
          disabled={isDisabled}
          value={model}
          onChange={(event) => onChange({ ...options, model: event.target.value })}
        />
      )}
    </span>
  )
}
