/** How large a request may be: files are refused here before the server would refuse them. */
import { useServer } from '../../data/server.ts'

export function useBodyLimit(): number {
  return useServer().facts?.maxBodyBytes ?? 4 * 1024 ** 2
}
