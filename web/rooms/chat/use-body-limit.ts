/** How large a request may be: files are refused here before the server would refuse them. */
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'

export function useBodyLimit(): number {
  const { value } = useResource('server', (signal) => api<{ maxBodyBytes: number }>('/api/server', { signal }))
  return value?.maxBodyBytes ?? 4 * 1024 ** 2
}
