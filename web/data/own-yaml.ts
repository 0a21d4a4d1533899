/**
 * YAML that a chat of this tab sends with each message, instead of what its agent's file says: from the editor of the agent. null: the file counts
 * again, whatever the conversation had. Absent: the server decides, and goes on as the conversation did.
 */
export type OwnYaml = string | null | undefined

const prefix = 'millrace-yaml:'
const known = new Map<string, OwnYaml>()
const listeners = new Set<() => void>()

/** The place of a chat; one without a thread has not begun. */
export function chatPlace(agentId: string, threadId?: string): string {
  return `${agentId}:${threadId ?? ''}`
}

export function readYaml(place: string): OwnYaml {
  if (!known.has(place)) known.set(place, stored(place))
  return known.get(place)
}

export function keepYaml(place: string, yaml: OwnYaml): void {
  known.set(place, yaml)
  try {
    if (yaml === undefined) sessionStorage.removeItem(prefix + place)
    else sessionStorage.setItem(prefix + place, JSON.stringify(yaml))
  } catch {
    // Full or forbidden: it lasts as long as the page.
  }
  for (const listener of listeners) listener()
}

export function onYaml(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function stored(place: string): OwnYaml {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(prefix + place) ?? '0')
    return typeof value === 'string' || value === null ? value : undefined
  } catch {
    return undefined
  }
}
