/**
 * The token that a client keeps of a block of a model's reasoning. `sealed`: names the run (`server/turn/reasoning-token.ts`). `part`: counts the blocks
 * of reasoning in the run's answer, from 0.
 */
export function reasoningToken(sealed: string, part: number): string {
  return `${sealed}.${part}`
}
