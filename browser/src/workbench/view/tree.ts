/**
 * The file tree. Directories are read when they are opened for the first time.
 */
import type { PlaygroundClient } from '../../engine/api';
import type { Root } from '../changes';
import { failure } from '../failure';
import { i18n } from '../i18n';
import { basename, directory } from '../paths';
import { el, on } from './dom';

interface Item {
	readonly element: HTMLLIElement;
	readonly row: HTMLElement;
	readonly path: string;
	readonly isDirectory: boolean;
	group: HTMLUListElement | null;
	loaded: boolean;
}

export class FileTree {
	readonly element: HTMLElement;
	private readonly list: HTMLUListElement;
	private readonly items = new Map< string, Item >();
	private client: PlaygroundClient | null = null;
	private roots: readonly Root[] = [];
	private current: string | null = null;

	/** `open` gets the path of a chosen file. */
	constructor( private readonly open: ( path: string ) => void ) {
		this.list = el( 'ul', { role: 'tree', 'aria-label': i18n.__( 'Files', 'codebox' ), class: 'wp-codebox-tree' } );
		this.element = el( 'div', { class: 'wp-codebox-tree-box' }, this.list );
		on( this.list, { keydown: ( event ) => this.key( event ) } );
	}

	/** Shows the roots of a session and opens the first. */
	async connect( client: PlaygroundClient, roots: readonly Root[] ): Promise< void > {
		this.client = client;
		this.roots = roots;
		this.items.clear();
		this.list.replaceChildren();
		for ( const root of roots ) {
			const isDirectory = await client.isDir( root.path );
			this.list.append( this.add( root.path, isDirectory, root.label || root.target ).element );
		}
		const first = this.items.get( roots[ 0 ]?.path ?? '' );
		if ( first ) {
			first.row.tabIndex = 0;
			if ( first.isDirectory ) {
				await this.expand( first );
			}
		}
	}

	/** Reads open directories again. */
	async refresh(): Promise< void > {
		for ( const item of [ ...this.items.values() ] ) {
			if ( item.loaded && this.items.has( item.path ) ) {
				await this.fill( item );
			}
		}
	}

	/** Marks the file that the editor shows. */
	select( path: string | null ): void {
		for ( const item of this.items.values() ) {
			item.row.setAttribute( 'aria-selected', String( path === item.path ) );
		}
		this.current = path;
	}

	/** Marks the files that differ from the start of the session. */
	mark( changed: ReadonlyMap< string, 'added' | 'modified' | 'deleted' > ): void {
		for ( const item of this.items.values() ) {
			const status = changed.get( item.path );
			const inside = item.isDirectory && [ ...changed.keys() ].some( ( path ) => path.startsWith( item.path + '/' ) );
			item.row.dataset.changed = status ?? ( inside ? 'inside' : '' );
			item.row.title = status ? i18n.__( 'changed in this session', 'codebox' ) : '';
		}
	}

	private add( path: string, isDirectory: boolean, label: string ): Item {
		const row = el( 'span', { class: `wp-codebox-tree-row ${ isDirectory ? 'is-directory' : 'is-file' }`, tabindex: -1 }, el( 'span', { class: 'wp-codebox-tree-name', dir: 'ltr' }, label ) );
		const element = el( 'li', { role: 'none' }, row );
		// The row gets focus and role, not the list item around it, which also contains the list of children.
		row.setAttribute( 'role', 'treeitem' );
		row.setAttribute( 'aria-selected', 'false' );
		const item: Item = { element, row, path, isDirectory, group: null, loaded: false };
		if ( isDirectory ) {
			row.setAttribute( 'aria-expanded', 'false' );
		}
		on( row, { click: () => this.activate( item ), focus: () => this.roam( item ) } );
		this.items.set( path, item );
		return item;
	}

	private activate( item: Item ): void {
		this.roam( item );
		item.row.focus();
		if ( ! item.isDirectory ) {
			this.open( item.path );
		} else if ( this.isExpanded( item ) ) {
			this.collapse( item );
		} else {
			void this.expand( item );
		}
	}

	private isExpanded( item: Item ): boolean {
		return 'true' === item.row.getAttribute( 'aria-expanded' );
	}

	private collapse( item: Item ): void {
		item.row.setAttribute( 'aria-expanded', 'false' );
		if ( item.group ) {
			item.group.hidden = true;
		}
	}

	private async expand( item: Item ): Promise< void > {
		item.row.setAttribute( 'aria-expanded', 'true' );
		if ( ! item.group ) {
			item.group = el( 'ul', { role: 'group' } );
			item.element.append( item.group );
		}
		item.group.hidden = false;
		if ( ! item.loaded ) {
			item.row.setAttribute( 'aria-busy', 'true' );
			await this.fill( item );
			item.row.removeAttribute( 'aria-busy' );
		}
	}

	private async fill( item: Item ): Promise< void > {
		const { client } = this;
		if ( ! client || ! item.group ) {
			return;
		}
		try {
			const names = await client.listFiles( item.path );
			const rows = await Promise.all(
				names.map( async ( name ) => {
					const path = `${ item.path }/${ basename( name ) }`;
					return { path, isDirectory: await client.isDir( path ) };
				} )
			);
			rows.sort( ( a, b ) => Number( b.isDirectory ) - Number( a.isDirectory ) || a.path.localeCompare( b.path ) );
			const wanted = new Set( rows.map( ( row ) => row.path ) );
			for ( const known of [ ...this.items.values() ] ) {
				const below = known.path.startsWith( item.path + '/' );
				const child = below ? item.path + '/' + known.path.slice( item.path.length + 1 ).split( '/' )[ 0 ]! : '';
				if ( below && ! wanted.has( child ) ) {
					this.items.delete( known.path );
					known.element.remove();
				}
			}
			const kept = rows.map( ( row ) => {
				const known = this.items.get( row.path );
				return known && known.isDirectory === row.isDirectory ? known : this.add( row.path, row.isDirectory, basename( row.path ) );
			} );
			const focused = document.activeElement;
			item.group.replaceChildren( ...kept.map( ( child ) => child.element ) );
			if ( focused instanceof HTMLElement && this.list.contains( focused ) ) {
				focused.focus();
			}
			if ( 0 === kept.length ) {
				item.group.append( el( 'li', { role: 'none', class: 'wp-codebox-tree-empty' }, i18n.__( 'empty', 'codebox' ) ) );
			}
			item.loaded = true;
			this.select( this.current );
			this.ensureStop();
		} catch ( thrown ) {
			item.group.replaceChildren( el( 'li', { role: 'none', class: 'wp-codebox-tree-empty' }, failure( thrown ).message ) );
		}
	}

	/** Makes an item the one that the Tab key reaches. */
	private roam( item: Item ): void {
		for ( const other of this.items.values() ) {
			other.row.tabIndex = other === item ? 0 : -1;
		}
	}

	private ensureStop(): void {
		const items = [ ...this.items.values() ];
		if ( items[ 0 ] && ! items.some( ( item ) => 0 === item.row.tabIndex ) ) {
			items[ 0 ].row.tabIndex = 0;
		}
	}

	/** Items in the order in which they are seen. */
	private visible(): Item[] {
		const rows = [ ...this.list.querySelectorAll< HTMLElement >( '[role=treeitem]' ) ].filter( ( row ) => null === row.closest( 'ul[hidden]' ) );
		const byRow = new Map( [ ...this.items.values() ].map( ( item ) => [ item.row, item ] ) );
		return rows.flatMap( ( row ) => byRow.get( row ) ?? [] );
	}

	private key( event: KeyboardEvent ): void {
		const visible = this.visible();
		const at = visible.findIndex( ( item ) => item.row === document.activeElement );
		const item = visible[ at ];
		if ( ! item || event.altKey || event.ctrlKey || event.metaKey ) {
			return;
		}
		const open = item.isDirectory && this.isExpanded( item );
		const parent = this.roots.some( ( root ) => root.path === item.path ) ? undefined : this.items.get( directory( item.path ) );
		const go = ( target: Item | undefined ) => {
			if ( target ) {
				this.roam( target );
				target.row.focus();
			}
		};
		const acts: Record< string, () => void > = {
			ArrowDown: () => go( visible[ at + 1 ] ),
			ArrowUp: () => go( visible[ at - 1 ] ),
			ArrowRight: () => ( open ? go( visible[ at + 1 ] ) : item.isDirectory && void this.expand( item ) ),
			ArrowLeft: () => ( open ? this.collapse( item ) : go( parent ) ),
			Home: () => go( visible[ 0 ] ),
			End: () => go( visible[ visible.length - 1 ] ),
			Enter: () => this.activate( item ),
			' ': () => this.activate( item ),
		};
		const act = acts[ event.key ];
		if ( act ) {
			event.preventDefault();
			act();
		} else if ( 1 === event.key.length ) {
			const after = [ ...visible.slice( at + 1 ), ...visible.slice( 0, at + 1 ) ];
			go( after.find( ( other ) => basename( other.path ).toLowerCase().startsWith( event.key.toLowerCase() ) ) );
		}
	}
}
