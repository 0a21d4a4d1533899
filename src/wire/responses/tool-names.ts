/**
 * The names of the client's tools. A namespace holds functions: the model knows one as `namespace__name`, and the client as two fields. A custom tool
 * takes a text, which the model writes as `{"input": text}`. `$input.tools` has them as the model gets them, with the fields that the client knows.
 */

export interface ClientToolName {
  name: string
  namespace?: string
  /** Its input is a text. */
  isText: boolean
}

type Fields = Record<string, unknown>

/** By the name that the model knows. */
export function toolNames(tools: unknown): ReadonlyMap<string, ClientToolName> {
  const names = new Map<string, ClientToolName>()
  if (!Array.isArray(tools)) return names
  for (const tool of tools as unknown[]) {
    const { type, name, namespace } = (tool ?? {}) as Fields
    if (typeof name !== 'string') continue
    const isText = type === 'custom'
    if (typeof namespace === 'string') {
      names.set(name, { name: name.slice(namespace.length + separator.length), namespace, isText })
    } else if (isText) names.set(name, { name, isText })
  }
  return names
}

const separator = '__'

/** The name that the model knows. */
export function modelToolName(name: string, namespace?: unknown): string {
  return typeof namespace === 'string' && namespace !== '' ? `${namespace}${separator}${name}` : name
}
