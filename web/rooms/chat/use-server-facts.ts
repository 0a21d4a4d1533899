/** What this server can do, as far as it tells. */
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'

export interface ServerFacts {
  maxBodyBytes: number
  /** `POST /api/runs` takes `previousRunId`: messages can be edited and answered again. */
  canBranch: boolean
}

const unknown: ServerFacts = { maxBodyBytes: 4 * 1024 ** 2, canBranch: false }

export function useServerFacts(): ServerFacts {
  const { value } = useResource('server', async (signal) => {
    const { maxBodyBytes = unknown.maxBodyBytes, features = {} } = await api<{
      maxBodyBytes?: number
      features?: Record<string, unknown>
    }>('/api/server', { signal })
    return { maxBodyBytes, canBranch: features['previousRunId'] === true }
  })
  return value ?? unknown
}
