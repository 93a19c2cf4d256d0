/** PHP programs are bundled as text, and the loaders of PHP are built apart from the worker. */
declare module '*.php' {
	const text: string;
	export default text;
}
