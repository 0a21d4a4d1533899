/** `millrace/langchain`: LangChain's chat models as models of agents. */
export { fromLangChain, type LangChainChatModel } from './models/langchain/langchain.ts'
