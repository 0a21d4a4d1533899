/** What is filled in once for all columns. */
import type { AgentFacts } from '../../../data/hooks.ts'
import type { Schema } from '../../../kit/SchemaForm.tsx'
import { formOf } from '../agent-form.ts'

export interface SharedForm {
  /** Absent: a message alone. */
  schema: Schema | undefined
  isMessageRequired: boolean
  /** Why they cannot be asked together. */
  fault?: string
}

/** One form, if all take the same fields. Agents whose fields may be left out can be asked with a message alone. */
export function sharedForm(agents: readonly AgentFacts[]): SharedForm {
  const forms = agents.map(formOf)
  const [first] = forms
  const isSame = forms.every(({ schema }) => fieldsOf(schema) === fieldsOf(first?.schema))
  if (isSame) return { schema: first?.schema, isMessageRequired: forms.some((form) => form.isMessageRequired) }
  const plain = { schema: undefined, isMessageRequired: true }
  const needy = agents.find((_, i) => (forms[i]!.schema?.required ?? []).length > 0)
  if (needy === undefined) return plain
  const { id, name = id } = needy
  const fields = formOf(needy).schema!.required!.join(', ')
  return {
    ...plain,
    fault: `${name} needs fields that the others do not have: ${fields}. Choose agents with the same fields, or agents that take a message.`,
  }
}

function fieldsOf(schema: Schema | undefined): string {
  return JSON.stringify([schema?.properties, schema?.required?.toSorted()])
}
