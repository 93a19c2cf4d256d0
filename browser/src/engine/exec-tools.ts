/** Small versions of the common file tools. An option that is not known is refused, never ignored. */
import type { PHP } from '@php-wasm/universal';
import { __private__dont__use as internals } from '@php-wasm/universal';
import { copyTree, removeTree } from './files.js';

/** Receives output as it comes. */
export type Output = ( stream: 'stdout' | 'stderr', data: string ) => void;

/** Where a command runs. */
export interface ToolContext {
	php: PHP;
	cwd: string;
	output: Output;
	/** Makes a path absolute. */
	path: ( given: string ) => string;
}

type Tool = ( context: ToolContext, args: string[] ) => number;

/** The command exists, but not with these arguments. */
export class UsageProblem extends Error {}

interface Parsed {
	flags: Set< string >;
	values: Map< string, string >;
	rest: string[];
}

/** Separates options from operands. `known` lists the letters of options without a value, `withValue` of those with one. */
function parse( args: string[], known: string, withValue = '' ): Parsed {
	const parsed: Parsed = { flags: new Set(), values: new Map(), rest: [] };
	let open = true;
	for ( let at = 0; at < args.length; at += 1 ) {
		const word = args[ at ] ?? '';
		if ( ! open || '-' === word || ! word.startsWith( '-' ) ) {
			parsed.rest.push( word );
		} else if ( '--' === word ) {
			open = false;
		} else {
			at += options( word, args[ at + 1 ], known, withValue, parsed );
		}
	}
	return parsed;
}

function options( word: string, next: string | undefined, known: string, withValue: string, parsed: Parsed ): number {
	if ( /^-\d+$/.test( word ) && withValue.includes( 'n' ) ) {
		parsed.values.set( 'n', word.slice( 1 ) );
		return 0;
	}
	for ( let at = 1; at < word.length; at += 1 ) {
		const letter = word[ at ] ?? '';
		if ( withValue.includes( letter ) ) {
			const value = word.slice( at + 1 );
			parsed.values.set( letter, '' === value ? next ?? '' : value );
			return '' === value ? 1 : 0;
		}
		if ( ! known.includes( letter ) ) {
			throw new UsageProblem( `the option ${ word } is not supported` );
		}
		parsed.flags.add( letter );
	}
	return 0;
}

function say( context: ToolContext, text: string ): void {
	if ( '' !== text ) {
		context.output( 'stdout', text );
	}
}

function complain( context: ToolContext, text: string ): 1 {
	context.output( 'stderr', `${ text }\n` );
	return 1;
}

/** Reads each file and hands its text to `use`; a missing file is named on stderr. */
function eachFile( context: ToolContext, name: string, files: string[], use: ( text: string, file: string ) => void ): number {
	if ( 0 === files.length ) {
		throw new UsageProblem( `${ name } without a file would read from the keyboard` );
	}
	let status = 0;
	for ( const file of files ) {
		const path = context.path( file );
		if ( context.php.isDir( path ) ) {
			status = complain( context, `${ name }: ${ file }: Is a directory` );
		} else if ( ! context.php.isFile( path ) ) {
			status = complain( context, `${ name }: ${ file }: No such file or directory` );
		} else {
			use( context.php.readFileAsText( path ), file );
		}
	}
	return status;
}

function lines( text: string ): string[] {
	const all = text.split( '\n' );
	if ( '' === all[ all.length - 1 ] ) {
		all.pop();
	}
	return all;
}

function joined( all: string[] ): string {
	return 0 === all.length ? '' : `${ all.join( '\n' ) }\n`;
}

/** Size and time of a file, which the public interface of PHP's file system does not give. */
function facts( php: PHP, path: string ): { size: number; mtime: Date; mode: number } {
	return ( php as unknown as Record< symbol, { FS: { stat: ( one: string ) => { size: number; mtime: Date; mode: number } } } > )[ internals ]!.FS.stat( path );
}

function listing( context: ToolContext, directory: string, names: string[], long: boolean ): string {
	if ( ! long ) {
		return joined( names );
	}
	return joined( names.map( ( name ) => {
		const path = '' === directory ? context.path( name ) : `${ directory }/${ name }`;
		const { size, mtime, mode } = facts( context.php, path );
		const rights = [ 6, 3, 0 ].map( ( shift ) => [ 'r', 'w', 'x' ].map( ( letter, bit ) => ( ( mode >> shift ) & ( 4 >> bit ) ? letter : '-' ) ).join( '' ) ).join( '' );
		return `${ context.php.isDir( path ) ? 'd' : '-' }${ rights } ${ String( size ).padStart( 9 ) } ${ mtime.toISOString().slice( 0, 16 ).replace( 'T', ' ' ) } ${ name }`;
	} ) );
}

function ls( context: ToolContext, args: string[] ): number {
	const { flags, rest } = parse( args, 'la1AhR' );
	if ( flags.has( 'R' ) ) {
		throw new UsageProblem( 'ls -R is not supported, use find' );
	}
	let status = 0;
	const given = 0 === rest.length ? [ '.' ] : rest;
	for ( const one of given ) {
		const path = context.path( one );
		if ( context.php.isDir( path ) ) {
			const names = context.php.listFiles( path ).filter( ( name ) => flags.has( 'a' ) || flags.has( 'A' ) || ! name.startsWith( '.' ) ).sort();
			say( context, ( given.length > 1 ? `${ one }:\n` : '' ) + listing( context, path, names, flags.has( 'l' ) ) );
		} else if ( context.php.fileExists( path ) ) {
			say( context, listing( context, '', [ one ], flags.has( 'l' ) ) );
		} else {
			status = complain( context, `ls: ${ one }: No such file or directory` );
		}
	}
	return status;
}

function headOrTail( name: 'head' | 'tail' ): Tool {
	return ( context, args ) => {
		const { values, rest } = parse( args, '', 'nc' );
		const bytes = values.get( 'c' );
		const count = Number( bytes ?? values.get( 'n' ) ?? 10 );
		if ( ! Number.isInteger( count ) || count < 0 ) {
			throw new UsageProblem( `${ name } takes a whole number` );
		}
		return eachFile( context, name, rest, ( text, file ) => {
			const title = rest.length > 1 ? `==> ${ file } <==\n` : '';
			const all = undefined === bytes ? lines( text ) : [ ...text ];
			const part = 'head' === name ? all.slice( 0, count ) : all.slice( Math.max( 0, all.length - count ) );
			say( context, title + ( undefined === bytes ? joined( part as string[] ) : part.join( '' ) ) );
		} );
	};
}

function wc( context: ToolContext, args: string[] ): number {
	const { flags, rest } = parse( args, 'lwcm' );
	const all = 0 === flags.size;
	return eachFile( context, 'wc', rest, ( text, file ) => {
		const counts = [
			...( all || flags.has( 'l' ) ? [ text.split( '\n' ).length - 1 ] : [] ),
			...( all || flags.has( 'w' ) ? [ text.split( /\s+/ ).filter( Boolean ).length ] : [] ),
			...( all || flags.has( 'c' ) ? [ new TextEncoder().encode( text ).byteLength ] : [] ),
			...( flags.has( 'm' ) ? [ [ ...text ].length ] : [] ),
		];
		say( context, `${ counts.map( ( count ) => String( count ).padStart( all ? 7 : 0 ) ).join( ' ' ) } ${ file }\n` );
	} );
}

/** All paths below a path, itself included, in order. */
function walk( php: PHP, path: string, shown: string ): string[] {
	if ( ! php.isDir( path ) ) {
		return [ shown ];
	}
	return [ shown, ...php.listFiles( path ).sort().flatMap( ( name ) => walk( php, `${ path }/${ name }`, `${ shown.replace( /\/$/, '' ) }/${ name }` ) ) ];
}

function grep( context: ToolContext, args: string[] ): number {
	const { flags, values, rest } = parse( args, 'inrRlcEFvHh', 'e' );
	const pattern = values.get( 'e' ) ?? rest.shift();
	if ( undefined === pattern ) {
		throw new UsageProblem( 'grep needs a pattern' );
	}
	const recursive = flags.has( 'r' ) || flags.has( 'R' );
	const given = 0 === rest.length && recursive ? [ '.' ] : rest;
	let matcher: RegExp;
	try {
		matcher = new RegExp( flags.has( 'F' ) ? pattern.replace( /[.*+?^${}()|[\]\\]/g, '\\$&' ) : pattern, flags.has( 'i' ) ? 'i' : '' );
	} catch {
		throw new UsageProblem( `${ JSON.stringify( pattern ) } is not a regular expression of this grep (JavaScript syntax)` );
	}
	const files = recursive ? given.flatMap( ( one ) => walk( context.php, context.path( one ), one ) ).filter( ( one ) => context.php.isFile( context.path( one ) ) ) : given;
	const named = ! flags.has( 'h' ) && ( flags.has( 'H' ) || recursive || files.length > 1 );
	let found = false;
	const status = eachFile( context, 'grep', files, ( text, file ) => {
		const hits = lines( text ).flatMap( ( line, index ) => ( matcher.test( line ) !== flags.has( 'v' ) ? [ { line, index } ] : [] ) );
		found ||= hits.length > 0;
		if ( flags.has( 'l' ) ) {
			say( context, hits.length > 0 ? `${ file }\n` : '' );
		} else if ( flags.has( 'c' ) ) {
			say( context, `${ named ? `${ file }:` : '' }${ hits.length }\n` );
		} else {
			say( context, joined( hits.map( ( { line, index } ) => `${ named ? `${ file }:` : '' }${ flags.has( 'n' ) ? `${ index + 1 }:` : '' }${ line }` ) ) );
		}
	} );
	return 0 !== status ? 2 : found ? 0 : 1;
}

function find( context: ToolContext, args: string[] ): number {
	const at = args.findIndex( ( one ) => one.startsWith( '-' ) );
	const starts = at < 0 ? args : args.slice( 0, at );
	const tests = at < 0 ? [] : args.slice( at );
	const wanted: Array< ( shown: string ) => boolean > = [];
	for ( let index = 0; index < tests.length; index += 2 ) {
		const [ option, value ] = [ tests[ index ], tests[ index + 1 ] ];
		if ( undefined !== value && ( '-name' === option || '-iname' === option ) ) {
			const glob = new RegExp( `^${ value.replace( /[.+^${}()|\\]/g, '\\$&' ).replaceAll( '*', '.*' ).replaceAll( '?', '.' ) }$`, '-iname' === option ? 'i' : '' );
			wanted.push( ( shown ) => glob.test( shown.split( '/' ).pop() ?? '' ) );
		} else if ( '-type' === option && ( 'f' === value || 'd' === value ) ) {
			wanted.push( ( shown ) => context.php.isDir( context.path( shown ) ) === ( 'd' === value ) );
		} else {
			throw new UsageProblem( `find supports -name, -iname and -type f|d, not ${ option }` );
		}
	}
	let status = 0;
	for ( const start of 0 === starts.length ? [ '.' ] : starts ) {
		if ( context.php.fileExists( context.path( start ) ) ) {
			say( context, joined( walk( context.php, context.path( start ), start ).filter( ( shown ) => wanted.every( ( test ) => test( shown ) ) ) ) );
		} else {
			status = complain( context, `find: ${ start }: No such file or directory` );
		}
	}
	return status;
}

function remove( context: ToolContext, args: string[] ): number {
	const { flags, rest } = parse( args, 'rRf' );
	let status = 0;
	for ( const one of rest ) {
		const path = context.path( one );
		if ( ! context.php.fileExists( path ) ) {
			status = flags.has( 'f' ) ? status : complain( context, `rm: ${ one }: No such file or directory` );
		} else if ( context.php.isDir( path ) && ! flags.has( 'r' ) && ! flags.has( 'R' ) ) {
			status = complain( context, `rm: ${ one }: is a directory` );
		} else if ( '/' === path || '/wordpress' === path || path.startsWith( '/internal' ) ) {
			status = complain( context, `rm: ${ one }: cannot be removed, because the sandbox needs it` );
		} else {
			removeTree( context.php, path );
		}
	}
	return status;
}

/** `cp` and `mv`: the last operand is the target, a directory when there are several sources. */
function transfer( name: 'cp' | 'mv', context: ToolContext, args: string[] ): number {
	const { flags, rest } = parse( args, 'cp' === name ? 'rRaf' : 'f' );
	const last = rest.pop();
	if ( undefined === last || 0 === rest.length ) {
		throw new UsageProblem( `${ name } needs a source and a target` );
	}
	const { php } = context;
	const target = context.path( last );
	if ( rest.length > 1 && ! php.isDir( target ) ) {
		return complain( context, `${ name }: ${ last }: Not a directory` );
	}
	let status = 0;
	for ( const one of rest ) {
		const from = context.path( one );
		const to = php.isDir( target ) ? `${ target }/${ from.split( '/' ).pop() }` : target;
		if ( ! php.fileExists( from ) ) {
			status = complain( context, `${ name }: ${ one }: No such file or directory` );
		} else if ( `${ to }/`.startsWith( `${ from }/` ) ) {
			status = complain( context, `${ name }: ${ one }: source and target are the same, or one holds the other` );
		} else if ( 'mv' === name ) {
			php.mv( from, to );
		} else if ( php.isDir( from ) && ! [ 'r', 'R', 'a' ].some( ( flag ) => flags.has( flag ) ) ) {
			status = complain( context, `cp: ${ one }: is a directory (use -r)` );
		} else {
			copyTree( php, from, to );
		}
	}
	return status;
}

/** The tools by name. */
export const tools: Record< string, Tool > = {
	ls,
	cat: ( context, args ) => eachFile( context, 'cat', parse( args, '' ).rest, ( text ) => say( context, text ) ),
	pwd: ( context ) => ( say( context, `${ context.cwd }\n` ), 0 ),
	echo: ( context, args ) => ( say( context, '-n' === args[ 0 ] ? args.slice( 1 ).join( ' ' ) : `${ args.join( ' ' ) }\n` ), 0 ),
	true: () => 0,
	false: () => 1,
	head: headOrTail( 'head' ),
	tail: headOrTail( 'tail' ),
	wc,
	grep,
	find,
	mkdir: ( context, args ) => {
		const { flags, rest } = parse( args, 'p' );
		return rest.reduce( ( status, one ) => {
			const path = context.path( one );
			if ( ! flags.has( 'p' ) && context.php.fileExists( path ) ) {
				return complain( context, `mkdir: ${ one }: File exists` );
			}
			if ( ! flags.has( 'p' ) && ! context.php.isDir( path.slice( 0, path.lastIndexOf( '/' ) ) || '/' ) ) {
				return complain( context, `mkdir: ${ one }: No such file or directory` );
			}
			context.php.mkdir( path );
			return status;
		}, 0 );
	},
	rm: remove,
	cp: ( context, args ) => transfer( 'cp', context, args ),
	mv: ( context, args ) => transfer( 'mv', context, args ),
	touch: ( context, args ) => {
		parse( args, '' ).rest.forEach( ( one ) => context.php.writeFile( context.path( one ), context.php.isFile( context.path( one ) ) ? context.php.readFileAsBuffer( context.path( one ) ).slice() : '' ) );
		return 0;
	},
};
