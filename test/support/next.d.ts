// The example for Next.js is checked here without its packages; `npm run check:nextjs` builds it with them.
declare module 'next' {
  export interface NextConfig {
    outputFileTracingIncludes?: Record<string, string[]>
  }
}
declare module 'next/server' {
  export class NextRequest extends Request {}
  export function after(task: Promise<unknown>): void
}
