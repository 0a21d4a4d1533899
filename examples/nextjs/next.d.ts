// Only so that this repository needs no Next.js to check the example; delete it in a project that has one.
declare module 'next/server' {
  export class NextRequest extends Request {}
}
