/** What a person fills in for an agent: the fields of its declared input, and a message. */
import type { AgentFacts } from '../../data/hooks.ts'
import type { Schema } from '../../kit/SchemaForm.tsx'

export interface AgentForm {
  /** Absent: there is nothing but the message. */
  schema: Schema | undefined
  isMessageRequired: boolean
}

/** The message has a place of its own, whether or not the agent declares it. */
export function formOf({ input, messageRequired }: Pick<AgentFacts, 'input' | 'messageRequired'>): AgentForm {
  const declared = input as Schema | undefined
  const { messages, ...properties } = declared?.properties ?? {}
  const required = declared?.required ?? []
  const schema =
    Object.keys(properties).length === 0
      ? undefined
      : { ...declared, properties, required: required.filter((name) => name !== 'messages') }
  const isDeclared = messages !== undefined && required.includes('messages')
  return { schema, isMessageRequired: schema === undefined || messageRequired === true || isDeclared }
}
