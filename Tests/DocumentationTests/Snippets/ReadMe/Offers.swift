import RemoteRouting
import StoreCore

struct Offer: Codable {
    let price: Double
}

let shop = RemoteHost("shop.example.com")
let offers = Store(
    cacher: MemoryCacher<String, Offer>(expiry: .after(.seconds(60))),
    fetcher: shop.fetcher { Route(path: "/offers/\($0)") })
